import torch
from torch import nn

torch.manual_seed(0)

cell = nn.GRUCell(3, 4)
h, total = torch.zeros(2, 4), 0
for _ in range(3):
    h = cell(torch.randn(2, 3), h)
    h.pow(2).mean().backward(retain_graph=True)
