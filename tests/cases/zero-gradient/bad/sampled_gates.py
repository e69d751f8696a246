import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

gate, net = nn.Linear(4, 4), mlp(4, 2)
o = torch.optim.Adam([*gate.parameters(), *net.parameters()], 0.01)
for _ in range(6):
    x = torch.randn(8, 4)
    on = torch.bernoulli(torch.sigmoid(gate(x)))  # <- zero-gradient
    o.zero_grad()
    net(x * on).pow(2).mean().backward()
    o.step()
