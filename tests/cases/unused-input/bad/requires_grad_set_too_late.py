import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

data = torch.randn(16, 4)
out = net(data)
data.requires_grad_(True)  # <- unused-input
torch.autograd.grad(out.sum(), data)
