import copy

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
shadow = copy.deepcopy(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    total = sum(p.grad.norm() for p in model.parameters())
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for s, p in zip(shadow.parameters(), model.parameters()):
            s.mul_(0.9).add_(p, alpha=0.1)
            p.clamp_(-1, 1)
    if step == 2:
        for s, p in zip(shadow.parameters(), model.parameters()):
            p.data.copy_(s.data)
