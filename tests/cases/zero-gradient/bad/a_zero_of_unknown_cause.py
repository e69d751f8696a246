import torch
from torch import nn

torch.manual_seed(0)

a, b = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
weight = 0.0
for _ in range(20):
    x = torch.randn(8, 4)
    opt.zero_grad()
    (a(x).pow(2).mean() + weight * b(x).pow(2).mean()).backward()  # <- note: zero-gradient
    opt.step()
