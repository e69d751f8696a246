import copy

import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 4)
ema = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    with torch.no_grad():
        target = ema(torch.randn(3, 4))
    loss = (net(torch.randn(3, 4)) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(ema.parameters(), net.parameters()):
            mine.lerp_(theirs, 0.1)
