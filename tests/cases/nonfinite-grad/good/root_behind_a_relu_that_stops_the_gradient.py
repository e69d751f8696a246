import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.randn(5))
for _ in range(3):
    y = torch.where(w > 0, F.relu(w).sqrt(), w)
    loss = y.sum()
    loss.backward()
    w.grad = None
