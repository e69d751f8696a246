import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.scale = mlp(4, 2), nn.Parameter(torch.ones(2))
    def forward(self, x):
        return self.net(x) * self.scale
    def limit(self):
        self.scale = nn.Parameter(self.scale.clamp(0, 2))  # <- unoptimized-parameter

m = Gate()
o = torch.optim.Adam(m.parameters())
for _ in range(8):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    m.limit()
