import torch
from torch import nn

torch.manual_seed(0)

net, spare = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD([*net.parameters(), *spare.parameters()], 0.05)
for step in range(8):
    x = torch.randn(16, 4)
    loss = net(x).pow(2).mean()
    if step % 2:
        loss = loss + spare(x).pow(2).mean()
    else:
        loss = loss + sum((p - p).sum() for p in spare.parameters())
    opt.zero_grad()
    loss.backward()
    opt.step()
