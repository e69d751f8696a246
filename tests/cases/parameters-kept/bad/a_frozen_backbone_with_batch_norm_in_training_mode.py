import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Linear(4, 1)
body.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(6):
    opt.zero_grad()
    head(body(torch.randn(8, 3))).pow(2).mean().backward()  # <- note: frozen-moves
    opt.step()
