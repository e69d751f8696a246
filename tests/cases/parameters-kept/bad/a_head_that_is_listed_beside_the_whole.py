import warnings

import torch
from torch import nn

torch.manual_seed(0)

warnings.simplefilter("ignore")

def build(net):
    groups = list(net.parameters()) + list(net[1].parameters())
    return torch.optim.Adam(groups, lr=0.01)  # <- duplicate-parameter

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
opt = build(net)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
