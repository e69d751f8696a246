import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = mlp(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.body(x))

net = Net()
net.body.load_state_dict(copy.deepcopy(mlp(4, 8).state_dict()))
opt = torch.optim.Adam(net.head.parameters())
for _ in range(8):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
