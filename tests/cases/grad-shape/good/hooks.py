import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
h = m(torch.randn(6, 4))
h.register_hook(lambda g: g * 2)
h.register_hook(lambda g: None)
h.sum().backward()
