import torch
from torch import nn

torch.manual_seed(0)

lower, upper = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD(lower.parameters(), lr=0.1)
for _ in range(3):
    upper.requires_grad_(False)
    f = lower(torch.randn(8, 4))
    g = f.detach().requires_grad_()
    upper(g).pow(2).mean().backward()
    opt.zero_grad()
    f.backward(g.grad)
    opt.step()
