import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(4, 1)
before = copy.deepcopy(net.state_dict())
opt = torch.optim.Adam(net.parameters(), 1.0)
schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
for _ in range(5):
    opt.step()
    schedule.step()
assert all(torch.equal(a, b) for a, b in zip(before.values(), net.state_dict().values()))
w = torch.randn(3, requires_grad=True)
w.pow(2).sum().backward()
