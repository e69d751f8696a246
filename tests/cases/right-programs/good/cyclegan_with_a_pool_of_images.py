import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)

def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

G, Fb, DA, DB = net(), net(), nn.Linear(4, 1), nn.Linear(4, 1)
opt_g = torch.optim.Adam([*G.parameters(), *Fb.parameters()])
opt_d = torch.optim.Adam([*DA.parameters(), *DB.parameters()])
pool = []

def from_pool(x):
    pool.append(x.detach())
    return random.choice(pool[-5:])

for step in range(4):
    a, b = torch.randn(6, 4), torch.randn(6, 4)
    for p in [*DA.parameters(), *DB.parameters()]:
        p.requires_grad_(False)
    fake_b, fake_a = G(a), Fb(b)
    loss_g = (DB(fake_b) - 1).pow(2).mean() + (DA(fake_a) - 1).pow(2).mean()
    loss_g = loss_g + 10 * (F.l1_loss(Fb(fake_b), a) + F.l1_loss(G(fake_a), b))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for p in [*DA.parameters(), *DB.parameters()]:
        p.requires_grad_(True)
    opt_d.zero_grad()
    for D, real, fake in ((DB, b, fake_b), (DA, a, fake_a)):
        loss_d = 0.5 * ((D(real) - 1).pow(2).mean() + D(from_pool(fake)).pow(2).mean())
        loss_d.backward()
    opt_d.step()
