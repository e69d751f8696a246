import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net, head = nn.Conv2d(1, 4, 3), nn.Linear(4, 2)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])

def cam(x):
    maps = torch.relu(net(x))
    maps.retain_grad()
    head(maps.mean((2, 3)))[:, 1].sum().backward()
    weights = maps.grad.mean((2, 3), keepdim=True)
    for p in [*net.parameters(), *head.parameters()]:
        p.grad = None
    return torch.relu((weights * maps.detach()).sum(1))

for epoch in range(2):
    for _ in range(2):
        opt.zero_grad()
        out = head(torch.relu(net(torch.rand(3, 1, 8, 8))).mean((2, 3)))
        F.cross_entropy(out, torch.randint(0, 2, (3,))).backward()
        opt.step()
    cam(torch.rand(1, 1, 8, 8))
