import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
delta = torch.zeros(8, 4, requires_grad=True)
for _ in range(3):
    net(torch.randn(8, 4) + delta).pow(2).mean().backward()
    delta = (delta + 0.1 * delta.grad.sign()).clamp(-1, 1)  # <- non-leaf-grad
