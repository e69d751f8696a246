import copy

import torch
from torch import nn

torch.manual_seed(0)

q = nn.Linear(4, 1)
target = copy.deepcopy(q)
for _ in range(4):
    y = 0.9 * target(torch.randn(8, 4)).detach()
    loss = (q(torch.randn(8, 4)) - y).pow(2).mean()
    for p in q.parameters():
        if p.grad is not None:
            p.grad.data.zero_()
    loss.backward()
    for p in q.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
    for mine, theirs in zip(target.parameters(), q.parameters()):
        mine.data.copy_(mine.data * 0.9 + theirs.data * 0.1)
