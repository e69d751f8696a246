import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
opt = torch.optim.LBFGS(net.parameters())
x = torch.randn(16, 4)

def closure():
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    return loss

for _ in range(5):
    opt.step(closure)
