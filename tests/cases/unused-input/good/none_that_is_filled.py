import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

head = nn.Linear(4, 1)
params = [net[0].weight, head.weight]
grads = torch.autograd.grad(net(x).mean(), params, allow_unused=True)
grads = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, params)]
sum(g.norm() for g in grads)
