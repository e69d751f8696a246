import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

d = mlp(2, 1)
o = torch.optim.Adam(d.parameters())

def r1(x):
    x = x.detach().requires_grad_()
    s = d(x)
    g = torch.autograd.grad(outputs=s.sum(), inputs=x, retain_graph=True, only_inputs=True)[0]  # <- missing-create-graph
    return g.reshape(len(x), -1).pow(2).sum(1).mean()

for _ in range(5):
    x = torch.randn(8, 2)
    l = F.softplus(-d(x)).mean()
    l = l + 5 * r1(x)
    o.zero_grad()
    l.backward()
    o.step()
