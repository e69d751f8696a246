import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp()
o = torch.optim.SGD(m.parameters(), 0.1)
y = torch.zeros(8).long()
for _ in range(6):
    x = torch.randn(8, 4, requires_grad=True)
    g, = torch.autograd.grad(F.cross_entropy(m(x), y), x)
    adv = x + 0.1 * g / g.norm(dim=1, keepdim=True)
    l = F.cross_entropy(m(adv), y)
    o.zero_grad()
    l.backward()
    o.step()
