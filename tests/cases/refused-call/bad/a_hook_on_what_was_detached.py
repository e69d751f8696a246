import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

body = nn.Linear(4, 4)
for _ in range(3):
    h = body(torch.randn(8, 4)).detach()  # <- refused-call
    h.retain_grad()
    net(h).pow(2).mean().backward()
