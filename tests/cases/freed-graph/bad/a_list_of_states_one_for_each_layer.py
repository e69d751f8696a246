import torch
from torch import nn

torch.manual_seed(0)

cells = nn.ModuleList(nn.GRUCell(4, 4) for _ in range(2))
opt = torch.optim.SGD(cells.parameters(), lr=0.1)
hidden = [torch.zeros(2, 4) for _ in cells]
for t in range(3):
    x = torch.randn(2, 4)
    for i, cell in enumerate(cells):
        hidden[i] = cell(x, hidden[i])  # <- freed-graph
        x = hidden[i]
    opt.zero_grad()
    x.pow(2).mean().backward()
    opt.step()
