import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
for p in net[2].parameters():
    p.requires_grad_(False)
opt = torch.optim.SGD(net[2].parameters(), lr=0.1)
for _ in range(6):
    opt.zero_grad()
    net(torch.randn(4, 8)).pow(2).mean().backward()
    opt.step()  # <- step-without-grad
