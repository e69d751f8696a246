import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(2, 4))
        self.out = mlp()
    def forward(self, x):
        with torch.no_grad():  # <- unreached-parameter
            x = torch.cat([self.prompt.expand(2, 4), x])
        return self.out(x)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
