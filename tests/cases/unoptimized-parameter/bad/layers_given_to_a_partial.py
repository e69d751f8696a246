from functools import partial

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = mlp()
        self.scale = partial(lambda x, gate: x * gate(x), gate=nn.Linear(4, 4))  # <- unoptimized-parameter
    def forward(self, x):
        return self.out(self.scale(x))

m = M()
o = torch.optim.Adam(m.parameters())
for i in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
