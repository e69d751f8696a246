import copy

import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
meta = torch.optim.Adam(net.parameters(), 1e-3)
for it in range(5):
    meta.zero_grad()
    for task in range(3):
        f = copy.deepcopy(net)
        inner = torch.optim.SGD(f.parameters(), 0.01)
        for _ in range(2):
            l = f(torch.randn(8, 2)).pow(2).mean()
            inner.zero_grad()
            l.backward()
            inner.step()
        l = f(torch.randn(8, 2)).pow(2).mean()
        g = torch.autograd.grad(l, list(f.parameters()))
        for p, q in zip(net.parameters(), g):
            p.grad = q / 3 if p.grad is None else p.grad + q / 3
    meta.step()
