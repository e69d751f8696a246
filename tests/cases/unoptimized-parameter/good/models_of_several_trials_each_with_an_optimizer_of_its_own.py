import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

def trial(steps):
    m, probe = mlp(4, 3), nn.Linear(3, 1).requires_grad_(False)
    o = torch.optim.Adam(m.parameters())
    for _ in range(steps):
        o.zero_grad()
        probe(m(torch.randn(8, 4))).pow(2).mean().backward()
        o.step()

for _ in range(4):
    trial(4)
