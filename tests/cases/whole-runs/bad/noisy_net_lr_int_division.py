import torch
from torch import nn

torch.manual_seed(0)

class Cfg:
    lr = 1
    scale = 10


m = nn.Linear(4, 1)


def make(c):
    return torch.optim.Adam(m.parameters(), lr=c.lr // c.scale)


o = make(Cfg)
for _ in range(8):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()  # <- no-effect-step
