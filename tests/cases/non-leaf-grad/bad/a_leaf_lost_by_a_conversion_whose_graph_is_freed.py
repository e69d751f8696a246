import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

z = (torch.randn(4, 4, requires_grad=True) * 0.1).double()  # <- non-leaf-grad
net = mlp().double()
for _ in range(3):
    (net(z).pow(2).mean() + z.pow(2).sum()).backward()
    if z.grad is not None:
        z.data -= z.grad
        z.grad = None
