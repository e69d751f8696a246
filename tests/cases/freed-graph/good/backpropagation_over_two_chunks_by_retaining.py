import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
total = 0
for t in range(6):
    h = cell(torch.randn(2, 3), h)
    total = total + head(h).pow(2).mean()
    if t % 2:
        opt.zero_grad()
        total.backward()
        opt.step()
        h, total = h.detach(), 0
