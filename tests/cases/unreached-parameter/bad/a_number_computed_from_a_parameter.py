import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = mlp(4, 3)
        self.scale = nn.Parameter(torch.tensor(2.6))
    def forward(self, x):
        scale = self.scale.exp().item()  # <- unreached-parameter
        return scale * self.enc(x)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    l = F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long())
    l.backward()
    o.step()
    print(l.item())
