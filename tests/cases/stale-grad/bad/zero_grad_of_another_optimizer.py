import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

gen, disc = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
for _ in range(3):
    opt_g.zero_grad()
    d_loss = F.softplus(disc(gen(torch.randn(4, 2)).detach())).mean()
    d_loss.backward()  # <- stale-grad
    opt_d.step()
    opt_g.zero_grad()
    g_loss = gen(torch.randn(4, 2)).pow(2).mean()
    g_loss.backward()
    opt_g.step()
