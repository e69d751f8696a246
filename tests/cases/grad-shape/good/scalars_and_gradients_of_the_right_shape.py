import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
x = torch.randn(6, 4, requires_grad=True)
m(x).mean().backward()
m(x).backward(torch.ones(6, 3))
m(x).mean().reshape(1, 1).backward()
g, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
(g.norm(dim=1) - 1).pow(2).mean().backward()
