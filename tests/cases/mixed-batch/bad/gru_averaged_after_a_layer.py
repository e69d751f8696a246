import torch
from torch import nn

torch.manual_seed(0)

g = nn.GRU(4, 8); one, two = nn.Linear(8, 8), nn.Linear(8, 1); x = torch.randn(6, 5, 4)
o, _ = g(x)  # <- mixed-batch
two(torch.tanh(one(o)).max(dim=1).values).sum().backward()
