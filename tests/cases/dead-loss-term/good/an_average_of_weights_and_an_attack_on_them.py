import copy

import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
slow = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), 0.05)
for _ in range(8):
    x = torch.randn(8, 4)
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    kept = [p.data.clone() for p in net.parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.05 * p.grad / (p.grad.norm() + 1e-12))
    net(x).pow(2).mean().backward()
    for p, k in zip(net.parameters(), kept):
        p.data.copy_(k)
    opt.step()
    with torch.no_grad():
        for s, p in zip(slow.parameters(), net.parameters()):
            s.add_(p - s, alpha=0.1)
