import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
for name, p in net.named_parameters():
    if name.startswith("0"):
        p.require_grad = False  # <- misspelt-attribute
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
