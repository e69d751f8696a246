import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

class Source:
    def detach(self):
        return self

source, x = Source(), torch.randn(8, 4)
for _ in range(4):
    source.detach()
    x.detach()
    opt.zero_grad()
    head(cell(x)).square().mean().backward()
    opt.step()
