import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
opt = torch.optim.Adam(net.parameters())
for _ in range(8):
    out = net(torch.randn(8, 4))
    penalty = out.abs().mean()  # <- unused-loss
    opt.zero_grad()
    out.square().mean().backward()
    opt.step()
