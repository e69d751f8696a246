import torch
from torch import nn

torch.manual_seed(0)

cell = nn.GRUCell(2, 4)

def states(n):
    h = torch.zeros(1, 4)
    for _ in range(n):
        h = cell(torch.randn(1, 2), h)  # <- freed-graph
        yield h

opt = torch.optim.SGD(cell.parameters(), lr=0.1)
for h in states(3):
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
