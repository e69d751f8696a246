import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

head = nn.Linear(4, 1)
try:
    torch.autograd.grad(net(x).mean(), head.weight)  # <- unused-input
except RuntimeError as error:
    print(error)
