import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

h = torch.zeros(8, 4)
h = cell(torch.randn(8, 4), h)
h.detach()  # <- discarded-result
opt.zero_grad()
head(h).square().mean().backward()
opt.step()
