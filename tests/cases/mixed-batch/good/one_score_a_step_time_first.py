import torch
from torch import nn

torch.manual_seed(0)

g, s = nn.GRU(4, 6), nn.Linear(6, 1)
h, _ = g(torch.randn(7, 5, 4))
w = torch.softmax(s(h), dim=0)
(w * h).sum(dim=0).pow(2).mean().backward()
