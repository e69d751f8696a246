import torch
from torch import nn

torch.manual_seed(0)

nets = [nn.Linear(3, 1) for _ in range(3)]
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
for _ in range(3):
    for net, opt in zip(nets, opts):
        opt.zero_grad()
        net(torch.randn(8, 3)).pow(2).mean().backward(retain_graph=True)  # <- unneeded-retain
        opt.step()
