import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(3, 1)
o = torch.optim.Adam(net.parameters())
for _ in range(5):
    r = torch.randn(16, 3, requires_grad=True)
    e = net(r)
    f = -torch.autograd.grad(e.sum(), r, retain_graph=True)[0]  # <- missing-create-graph
    l = F.mse_loss(e, torch.zeros_like(e)) + F.mse_loss(f, torch.ones_like(f))
    o.zero_grad()
    l.backward()
    o.step()
