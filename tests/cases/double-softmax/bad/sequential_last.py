import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1))  # <- double-softmax
loss = F.cross_entropy(m(torch.randn(5, 4)), torch.randint(0, 3, (5,)))
loss.backward()
