import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
x = torch.randn(6, 4, requires_grad=True)
d = m(x)
g, = torch.autograd.grad(d, x, create_graph=True)  # <- nonscalar-backward
