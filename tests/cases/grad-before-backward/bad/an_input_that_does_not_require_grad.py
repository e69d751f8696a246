import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def batch(n=16):
    x = torch.randn(n, 4)
    return x, x.sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

x, y = batch()
loss = F.mse_loss(net(x), y)
loss.backward()
x_adv = x + 0.1 * x.grad.sign()  # <- grad-before-backward
