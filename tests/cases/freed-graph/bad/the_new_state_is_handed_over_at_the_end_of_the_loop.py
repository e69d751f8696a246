import torch
from torch import nn

torch.manual_seed(0)

cell, readout = nn.GRUCell(3, 6), nn.Linear(6, 1)
opt = torch.optim.Adam(list(cell.parameters()) + list(readout.parameters()))
memory = torch.zeros(4, 6)
for t in range(4):
    x = torch.randn(4, 3)
    new_memory = cell(x, memory)
    loss = (readout(new_memory) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory = new_memory  # <- freed-graph
