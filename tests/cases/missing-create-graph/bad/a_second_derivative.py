import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(1, 1)
x = torch.rand(8, 1, requires_grad=True)
u = net(x)
du = torch.autograd.grad(u, x, torch.ones_like(u))[0]  # <- missing-create-graph
ddu = torch.autograd.grad(du, x, torch.ones_like(du))[0]
