import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

g, d = (mlp(4, 2), mlp(2, 1))
og, od = (torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters()))
for _ in range(6):
    f = g(torch.randn(8, 4))
    od.zero_grad()
    (d(f.detach()).mean() - d(torch.randn(8, 2)).mean()).backward()
    od.step()
    og.zero_grad()
    (-d(f).mean()).backward()
    og.step()
