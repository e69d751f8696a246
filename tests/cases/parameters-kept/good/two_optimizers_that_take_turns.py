import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
one, two = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.Adam(net[1].parameters(), lr=0.1)
for step in range(8):
    opt = (one, two)[step % 2]
    net.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
