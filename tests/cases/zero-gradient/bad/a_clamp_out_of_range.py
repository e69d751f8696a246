import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 2)
        self.ls = nn.Parameter(torch.full((2,), 9.0))
    def forward(self, x):
        s = self.ls.clamp(-5, 2)  # <- zero-gradient
        return (self.net(x) / s.exp()).pow(2).mean() + s.sum()

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(10):
    o.zero_grad()
    m(torch.randn(8, 4)).backward()
    o.step()
