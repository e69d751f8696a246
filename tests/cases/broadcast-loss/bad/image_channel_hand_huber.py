import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Conv2d(1, 1, 3, padding=1)
loss = F.huber_loss(m(torch.randn(3, 1, 5, 5)), torch.randn(3, 5, 5))  # <- broadcast-loss
loss.backward()
