import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 2)
o = torch.optim.Adam(m.parameters())
for _ in range(5):
    learner = copy.deepcopy(m)  # <- unreached-parameter
    inner = torch.optim.SGD(learner.parameters(), 0.1)
    learner(torch.randn(8, 4)).pow(2).mean().backward()
    inner.step()
    inner.zero_grad()
    loss = learner(torch.randn(8, 4)).pow(2).mean()
    o.zero_grad()
    loss.backward()
    o.step()
