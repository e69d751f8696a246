import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(8, 4)
    one, two = F.mse_loss(net(x)[:, 0], x[:, 0]), F.mse_loss(net(x)[:, 1], x[:, 1])
    opt.zero_grad()
    one.backward()
    (two + one.detach()).backward()
    opt.step()
