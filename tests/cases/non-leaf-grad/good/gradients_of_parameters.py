import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

a, b = (mlp(4, 8), nn.Linear(8, 2))
o = torch.optim.SGD(a.parameters(), 0.01)
for _ in range(6):
    o.zero_grad()
    b.zero_grad()
    F.cross_entropy(b(a(torch.randn(8, 4))), torch.zeros(8).long()).backward()
    o.step()
    with torch.no_grad():
        for p in b.parameters():
            p -= 0.01 * p.grad
