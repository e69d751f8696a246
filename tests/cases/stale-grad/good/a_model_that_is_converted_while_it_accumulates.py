import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    net.double()
    net.float()
    if step % 4 == 3:
        opt.step()
        opt.zero_grad()
