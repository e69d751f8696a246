import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

def slope(out, given):
    try:
        return torch.autograd.grad(out, given)[0]
    except RuntimeError:
        return torch.zeros_like(given)

head = nn.Linear(4, 1)
slope(net(x).mean(), head.weight)
