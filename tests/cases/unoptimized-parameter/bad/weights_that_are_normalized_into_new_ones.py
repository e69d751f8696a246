import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 2)
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(8):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    w = m[0].weight.detach()
    m[0].weight = nn.Parameter(w / w.norm(dim=1, keepdim=True))  # <- unoptimized-parameter
