import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Aux(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
    def forward(self, x):
        return self.b(self.a(x))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 4)
        self.extra = Aux()  # <- unreached-parameter
    def forward(self, x):
        return self.net(x)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
