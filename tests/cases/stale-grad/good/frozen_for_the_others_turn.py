import torch
from torch import nn

torch.manual_seed(0)

gen, disc = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
for _ in range(5):
    disc.requires_grad_(True)
    opt_d.zero_grad()
    disc(gen(torch.randn(8, 3)).detach()).mean().backward()
    opt_d.step()
    disc.requires_grad_(False)
    opt_g.zero_grad()
    (-disc(gen(torch.randn(8, 3)))).mean().backward()
    opt_g.step()
