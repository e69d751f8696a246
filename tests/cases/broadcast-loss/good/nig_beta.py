import torch
from torch import nn

torch.manual_seed(0)

p = nn.Parameter(torch.randn(6))
w = torch.rand(6, 6)
x = nn.Parameter(torch.randn(6, 1))
((x - p) * w).sum().backward()
