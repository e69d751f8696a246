import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 2))
    opt_d.zero_grad()
    F.softplus(-D(torch.randn(8, 3))).mean().backward()
    F.softplus(D(fake.detach())).mean().backward()
    opt_d.step()
    opt_g.zero_grad()
    F.softplus(-D(fake)).mean().backward()
    opt_g.step()
