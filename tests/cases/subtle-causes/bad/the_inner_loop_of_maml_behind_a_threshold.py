import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
meta = torch.optim.Adam(net.parameters())

def forward(x, w):
    h = F.linear(x, w[0], w[1])
    h = (h > 0).float()  # <- unused-input
    return F.linear(h, w[2], w[3])

for _ in range(3):
    x = torch.randn(8, 4)
    fast = [w.clone() for w in net.parameters()]
    loss = forward(x, fast).square().mean()
    grads = torch.autograd.grad(loss, fast, create_graph=True)
    meta.zero_grad()
    sum(g.square().sum() for g in grads).backward()
    meta.step()
