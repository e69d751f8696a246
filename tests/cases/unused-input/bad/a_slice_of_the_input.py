import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

out = net(x)
for i in range(4):
    part = x[:, i]  # <- unused-input
    slope = torch.autograd.grad(out.sum(), part, retain_graph=True)[0]
