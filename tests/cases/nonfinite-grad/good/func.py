import torch
from torch import nn
from torch.func import grad, vmap

torch.manual_seed(0)

f = lambda w, x: torch.sqrt((w * x).pow(2).sum())
vmap(grad(f), (None, 0))(torch.randn(3), torch.randn(5, 3))
nn.Linear(1, 1)(torch.ones(1)).sum().backward()
