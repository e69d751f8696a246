import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(4, 8)
        self.pre = nn.Linear(8, 4)
        self.cls = nn.Linear(8, 2)  # also note: unreached-parameter
    def forward(self, x, phase):
        h = self.body(x)
        return self.pre(h) if phase == 0 else self.cls(h)

m = M()
o = torch.optim.SGD(m.parameters(), 0.01)
for i in range(8):
    o.zero_grad()
    m(torch.randn(8, 4), 0).pow(2).mean().backward()
    o.step()
