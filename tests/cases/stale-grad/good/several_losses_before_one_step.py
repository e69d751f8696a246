import torch
from torch import nn

torch.manual_seed(0)

trunk, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
for _ in range(3):
    opt.zero_grad()
    a(torch.tanh(trunk(torch.randn(8, 4)))).pow(2).mean().backward()
    b(torch.tanh(trunk(torch.randn(8, 4)))).pow(2).mean().backward()
    opt.step()
