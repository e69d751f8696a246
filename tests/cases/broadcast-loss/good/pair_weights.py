import torch
from torch import nn

torch.manual_seed(0)

m, n = nn.Linear(4, 1), nn.Linear(4, 1)
w = torch.rand(6, 6)
x, p = m(torch.randn(6, 4)), n(torch.randn(6, 4)).squeeze(1)
((x - p).abs() * w).sum().backward()
