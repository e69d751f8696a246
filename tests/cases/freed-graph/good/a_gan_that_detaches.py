import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 2))
    d_loss = F.softplus(-D(torch.randn(8, 3))).mean() + F.softplus(D(fake.detach())).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
