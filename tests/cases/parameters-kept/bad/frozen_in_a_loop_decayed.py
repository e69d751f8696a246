import torch
from torch import nn

torch.manual_seed(0)

def freeze(module):
    for p in module.parameters():
        p.requires_grad = False  # <- frozen-moves

body, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=0.1)
for epoch in range(2):
    for _ in range(4):
        head.zero_grad()
        for p in body.parameters():
            if p.grad is not None:
                p.grad.zero_()
        head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
        opt.step()
    freeze(body)
