import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(1, 1)
o = torch.optim.Adam(net.parameters())
for _ in range(4):
    t = torch.rand(16, 1, requires_grad=True)
    u = net(t)
    du = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True)[0]  # <- missing-create-graph
    residual = du + u
    loss = residual.pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
    o.zero_grad()
    loss.backward()
    o.step()
