import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = mlp(4, 8)
        self.dec = mlp(8, 4)
    def forward(self, x):
        z = self.enc(x)
        z = z.detach()  # <- unreached-parameter
        return self.dec(z)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    l = m(torch.randn(8, 4)).pow(2).mean()
    print(l.item())
    l.backward()
    o.step()
