import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(2, 1)
o = torch.optim.Adam(net.parameters())
for _ in range(4):
    x = torch.rand(16, 2, requires_grad=True)
    net(x).sum().backward(retain_graph=True)  # <- missing-create-graph
    penalty = (x.grad.norm(dim=1) - 1).pow(2).mean()
    o.zero_grad()
    loss = net(x).pow(2).mean() + penalty
    loss.backward()
    o.step()
