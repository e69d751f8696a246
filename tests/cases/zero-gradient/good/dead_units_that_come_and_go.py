import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(12):
    opt.zero_grad()
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
