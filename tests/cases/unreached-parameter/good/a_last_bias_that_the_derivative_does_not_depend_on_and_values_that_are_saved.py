import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(1, 1)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(6):
    x = torch.rand(8, 1, requires_grad=True)
    slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    opt.zero_grad()
    (slope - x.detach().cos()).pow(2).mean().backward()
    opt.step()
    best = {name: p.detach().clone() for name, p in net.named_parameters()}
