import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

f, h = mlp(4, 3), nn.Linear(3, 3)
opt = torch.optim.SGD([*f.parameters(), *h.parameters()], 0.1)

def D(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()

for _ in range(8):
    x = torch.randn(8, 4)
    z1, z2 = f(x + 0.1 * torch.randn_like(x)), f(x + 0.1 * torch.randn_like(x))
    loss = D(h(z1), z2) / 2 + D(h(z2), z1) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
