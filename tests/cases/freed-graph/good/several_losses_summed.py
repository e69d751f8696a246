import torch
from torch import nn

torch.manual_seed(0)

trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
for _ in range(3):
    f = torch.relu(trunk(torch.randn(8, 4)))
    opt.zero_grad()
    (a(f).pow(2).mean() + b(f).pow(2).mean()).backward()
    opt.step()
