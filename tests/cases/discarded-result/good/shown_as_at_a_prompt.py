import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)  # also note: unreached-parameter
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

for _ in range(4):
    opt.zero_grad()
    head(torch.randn(8, 4)).square().mean().backward()
    opt.step()
head.weight.grad
head.weight.detach()
h = head(torch.randn(2, 4))
h.detach()
