import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
opt = torch.optim.Adam(net.parameters(), 0.05)
for step in range(60):
    out = net(torch.randn(8, 4))
    opt.zero_grad()
    F.relu(0.5 - out).mean().backward()  # also note: zero-gradient
    opt.step()
