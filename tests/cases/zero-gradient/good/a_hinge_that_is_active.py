import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 4)
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(10):
    a, p, n = (torch.randn(8, 4), torch.randn(8, 4), torch.randn(8, 4))
    o.zero_grad()
    F.relu((m(a) - m(p)).pow(2).sum(1) - (m(a) - m(n)).pow(2).sum(1) + 0.2).mean().backward()
    o.step()
