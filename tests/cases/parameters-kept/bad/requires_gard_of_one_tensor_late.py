import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    if step == 10:
        net.bias.requires_gard = False  # <- misspelt-attribute
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
