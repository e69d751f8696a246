import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(4, 2)
o = torch.optim.Adam(net.parameters())
for _ in range(5):
    x = torch.randn(3, 4)
    j = torch.autograd.functional.jacobian(net, x)  # <- missing-create-graph
    l = net(x).pow(2).mean() + 0.1 * j.pow(2).sum() / len(x)
    o.zero_grad()
    l.backward()
    o.step()
