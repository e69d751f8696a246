import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)
    def forward(self, h):
        weights = self.score(h).softmax(0)
        return (weights * h).sum(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.out = Pool(), mlp()
    def forward(self, x):
        pooled = self.pool(x)  # <- unreached-parameter
        pooled = x[-1]
        return self.out(pooled)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
