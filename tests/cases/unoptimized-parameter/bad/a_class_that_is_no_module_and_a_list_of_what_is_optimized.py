import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Scale:
    def __init__(self):
        self.gain = nn.Parameter(torch.ones(4))
    def __call__(self, x):
        return x * self.gain

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.out = Scale(), mlp()  # <- unoptimized-parameter
    def forward(self, x):
        return self.out(self.scale(x))

m, head = M(), nn.Linear(2, 1)
given = list(m.parameters())
o = torch.optim.Adam(given)  # <- unoptimized-parameter
for i in range(6):
    o.zero_grad()
    head(m(torch.randn(8, 4))).pow(2).mean().backward()
    o.step()
