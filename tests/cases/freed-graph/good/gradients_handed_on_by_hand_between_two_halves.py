import torch
from torch import nn

torch.manual_seed(0)

lower, upper = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*lower.parameters(), *upper.parameters()], lr=0.1)
for _ in range(3):
    f = torch.tanh(lower(torch.randn(8, 4)))
    g = f.detach().requires_grad_()
    opt.zero_grad()
    upper(g).pow(2).mean().backward()
    f.backward(g.grad)
    opt.step()
