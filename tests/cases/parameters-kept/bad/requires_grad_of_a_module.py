import torch
from torch import nn

torch.manual_seed(0)

def freeze(module):
    for child in module.children():
        child.requires_grad = False  # <- misspelt-attribute

net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1))
freeze(net[0])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
