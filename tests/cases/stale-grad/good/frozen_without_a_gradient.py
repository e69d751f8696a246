import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=0.1)
for step in range(8):
    if step == 3:
        body.requires_grad_(False)
    opt.zero_grad()
    head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
    opt.step()
