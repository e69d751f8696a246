import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(3, 1)
o = torch.optim.Adam(net.parameters())
for _ in range(5):
    x = torch.randn(8, 3, requires_grad=True)
    g = torch.autograd.grad(net(x).sum(), x)[0].detach()
    l = net(x).pow(2).mean() + g.pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
