import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(3, 6), nn.Linear(6, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

def train(windows):
    h = torch.zeros(2, 6)
    for window in windows:
        loss = 0
        for x in window:
            h = cell(x, h)  # <- freed-graph
            loss = loss + head(h).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

train(torch.randn(3, 4, 2, 3))
