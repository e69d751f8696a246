import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

def update(x, state):
    state = cell(x, state.detach())
    opt.zero_grad()
    head(state).square().mean().backward()
    opt.step()

def collect():
    state = torch.zeros(2, 4)
    for _ in range(24):
        x = torch.randn(2, 4)
        update(x, state)
        state = cell(x, state)  # <- graph-growth

collect()
