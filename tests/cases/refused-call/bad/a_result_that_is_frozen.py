import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

for _ in range(3):
    target = net(torch.randn(8, 4))
    target.requires_grad = False  # <- refused-call
    (net(torch.randn(8, 4)) - target).pow(2).mean().backward()
