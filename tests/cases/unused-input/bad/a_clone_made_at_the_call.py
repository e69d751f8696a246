import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

loss = net(x).mean()
w = net[0].weight
(g,) = torch.autograd.grad(loss, w.clone())  # <- unused-input
