import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

part = x[:, :2]
out = net(torch.cat([part, x[:, 2:]], 1))
torch.autograd.grad(out.sum(), part)
