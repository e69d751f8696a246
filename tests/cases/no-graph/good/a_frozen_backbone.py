import torch
from torch import nn

torch.manual_seed(0)

backbone, head = nn.Linear(4, 8), nn.Linear(8, 3)
for p in backbone.parameters():
    p.requires_grad = False
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    with torch.no_grad():
        f = backbone(torch.randn(8, 4))
    opt.zero_grad()
    head(f).pow(2).mean().backward()
    opt.step()
