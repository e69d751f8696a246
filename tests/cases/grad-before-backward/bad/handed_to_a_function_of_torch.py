import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def batch(n=16):
    x = torch.randn(n, 4)
    return x, x.sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(3):
    x, y = batch()
    opt.zero_grad()
    flat = torch.cat([p.grad.view(-1) for p in net.parameters()])  # <- grad-before-backward
    F.mse_loss(net(x), y).backward()
    opt.step()
