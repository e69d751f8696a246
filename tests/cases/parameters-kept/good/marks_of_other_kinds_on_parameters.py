import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 1)
net.weight.is_shared, net.bias.requires_decay = True, False
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
