import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

shared, a, b = mlp(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*shared.parameters(), *a.parameters()], 0.1)
other = torch.optim.SGD(b.parameters(), 0.1)
for step in range(30):
    x = torch.randn(8, 4)
    h = shared(x)
    if step >= 15:
        h = h.data  # <- unreached-parameter
    opt.zero_grad()
    a(h).square().mean().backward()
    opt.step()
    other.zero_grad()
    b(shared(x).detach()).square().mean().backward()
    other.step()
