import torch
from torch import nn

torch.manual_seed(0)

def batch(n=16):
    x = torch.randn(n, 4)
    return x, x.sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

w = torch.zeros(4, 1, requires_grad=True)
for _ in range(3):
    x, y = batch()
    with torch.no_grad():
        w -= 0.1 * w.grad  # <- grad-before-backward
    ((x @ w - y) ** 2).mean().backward()
