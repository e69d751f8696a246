import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

head = nn.Linear(4, 1)
params = [*net.parameters(), *head.parameters()]
grads = torch.autograd.grad(net(x).mean(), params)  # <- unused-input
