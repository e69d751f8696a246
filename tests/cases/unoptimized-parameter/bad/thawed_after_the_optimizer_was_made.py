import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
m = nn.Sequential(body, head)
body.requires_grad_(False)
o = torch.optim.Adam(p for p in m.parameters() if p.requires_grad)
for epoch in range(6):
    if epoch == 2:
        for p in body.parameters():
            p.requires_grad = True  # <- unoptimized-parameter
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
