import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 2)

def epoch(o, steps):
    for _ in range(steps):
        loss = m(torch.randn(8, 4)).pow(2).mean()
        o.zero_grad()
        loss.backward()
        o.step()

epoch(torch.optim.Adam(m.parameters()), 6)
m[0], m[2] = nn.Linear(4, 8), nn.Linear(8, 2)
epoch(torch.optim.Adam(m.parameters()), 6)
