import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
for _ in range(3):
    h = cell(torch.randn(2, 3), h.detach())
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  # <- unneeded-retain
    opt.step()
