import torch
from torch import nn

torch.manual_seed(0)

m, head = nn.Linear(4, 3), nn.Linear(3, 1)
h = m(torch.randn(6, 4))
h.register_hook(lambda g: g.mean(0))  # <- grad-shape
head(h).sum().backward()
