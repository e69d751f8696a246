import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.01)
        self.head_opt = torch.optim.Adam(net[1].parameters(), lr=0.1)

    def step(self, x):
        self.opt.zero_grad()
        self.net(x).pow(2).mean().backward()
        self.opt.step()
        self.head_opt.step()  # <- duplicate-parameter

trainer = Trainer(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
for _ in range(6):
    trainer.step(torch.randn(8, 3))
