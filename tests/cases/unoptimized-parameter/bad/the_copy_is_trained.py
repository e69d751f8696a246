import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 3)
o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
m = copy.deepcopy(m)  # also unreached-parameter
for _ in range(6):
    m.zero_grad()
    F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
    o.step()
