import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 2)
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    out = m(torch.randn(8, 4))
    a, b = (out[:, 0].pow(2).mean(), out[:, 1].abs().mean())
    W = m[2].weight
    ga, = torch.autograd.grad(a, W, retain_graph=True)
    gb, = torch.autograd.grad(b, W, retain_graph=True)
    l = a + ga.norm() / (gb.norm() + 0.0001) * b
    o.zero_grad()
    l.backward()
    o.step()
