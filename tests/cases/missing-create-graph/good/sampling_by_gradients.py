import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

e = mlp(4, 1)
o = torch.optim.Adam(e.parameters())
for _ in range(6):
    x = torch.randn(8, 4)
    for _ in range(3):
        x.requires_grad_(True)
        g, = torch.autograd.grad(e(x).sum(), x)
        x = (x - 0.1 * g + 0.01 * torch.randn_like(x)).detach()
    l = e(torch.randn(8, 4)).mean() - e(x).mean() + 0.001 * e(x).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
