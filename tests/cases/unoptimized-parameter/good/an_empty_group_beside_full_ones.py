import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp()
groups = [[p for n, p in m.named_parameters() if "norm" in n], [p for n, p in m.named_parameters()]]
o = torch.optim.SGD([{"params": group} for group in groups], 0.1)
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
