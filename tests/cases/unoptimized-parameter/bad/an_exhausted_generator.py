import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

body, head = mlp(), nn.Linear(2, 1)
params = body.parameters()
print(sum(p.numel() for p in params))
o = torch.optim.SGD([{"params": params}, {"params": head.parameters()}], lr=0.1)  # <- unoptimized-parameter
for _ in range(6):
    o.zero_grad()
    head(body(torch.randn(8, 4))).pow(2).mean().backward()
    o.step()
