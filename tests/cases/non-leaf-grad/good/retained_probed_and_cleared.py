import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp()
h = m[0](torch.randn(2, 4))
h.retain_grad()
m[2](h).sum().backward()
print(h.grad.shape)
s = m[0](torch.randn(2, 4))
m[2](s).sum().backward()
if s.grad is not None:
    s.grad.zero_()
x = torch.randn(3, requires_grad=True)
y = x * 2
print(y.requires_grad)
copy.deepcopy(m)
print(m[0].weight.grad.shape)
