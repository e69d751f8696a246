import copy

import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def step(net, opt, x):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()

def evaluate(net):
    net.eval()
    with torch.no_grad():
        return net(torch.randn(4, 4)).mean().item()

average = copy.deepcopy(net).eval().requires_grad_(False)
for i in range(6):
    step(net, opt, torch.randn(8, 4))
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.lerp_(p, 0.1)
        average(torch.randn(4, 4))
