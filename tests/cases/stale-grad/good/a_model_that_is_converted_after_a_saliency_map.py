import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
x = torch.randn(8, 4, requires_grad=True)
net(x).sum().backward()
print(x.grad.norm())
net.half()
