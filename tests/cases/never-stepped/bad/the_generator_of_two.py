import torch
from torch import nn

torch.manual_seed(0)

gen = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
disc = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
data = [torch.randn(5, 3) for _ in range(8)]

for x in data:
    d_opt.zero_grad()
    (disc(gen(torch.randn(5, 2)).detach()).mean() - disc(x).mean()).backward()
    d_opt.step()
    g_opt.zero_grad()
    (-disc(gen(torch.randn(5, 2))).mean()).backward()  # <- cleared-grad
