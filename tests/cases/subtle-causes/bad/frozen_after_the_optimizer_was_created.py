import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net, target = mlp(), mlp()
opt = torch.optim.Adam(net.parameters())
for p in net.parameters():
    p.requires_grad = False  # <- no-graph
for _ in range(3):
    x = torch.randn(8, 4)
    with torch.no_grad():
        y = target(x)
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
