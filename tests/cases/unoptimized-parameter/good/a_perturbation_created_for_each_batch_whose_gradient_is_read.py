import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

def attack(m, x, y):
    delta = nn.Parameter(torch.zeros_like(x))
    F.mse_loss(m(x + delta), y).backward()
    return (x + 0.1 * delta.grad.sign()).detach()

m = mlp(4, 2)
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x, y = torch.randn(8, 4), torch.zeros(8, 2)
    x = attack(m, x, y)
    o.zero_grad()
    F.mse_loss(m(x), y).backward()
    o.step()
