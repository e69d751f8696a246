import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 1)
o = torch.optim.Adam(m.parameters(), 0.01)
for _ in range(5):
    o.zero_grad()
    for t in range(2):
        f = copy.deepcopy(m)
        io = torch.optim.SGD(f.parameters(), 0.1)
        x = torch.randn(8, 4)
        for _ in range(2):
            io.zero_grad()
            f(x).pow(2).mean().backward()
            io.step()
        io.zero_grad()
        f(x).pow(2).mean().backward()
        for p, q in zip(m.parameters(), f.parameters()):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    o.step()
