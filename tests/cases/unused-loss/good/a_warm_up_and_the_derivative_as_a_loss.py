import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp(1, 1)
opt = torch.optim.Adam(net.parameters())
for step in range(8):
    x = torch.rand(16, 1, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    loss = (slope - x.detach().cos()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    error = (net(x) - x.sin()).abs().mean()
    print(loss.item(), error.item())
