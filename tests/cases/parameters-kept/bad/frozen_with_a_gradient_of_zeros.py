import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
for step in range(8):
    if step == 3:
        body.requires_grad_(False)  # <- frozen-moves
    opt.zero_grad(set_to_none=False)
    head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
    opt.step()
