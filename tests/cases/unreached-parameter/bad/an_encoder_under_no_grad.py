import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.LSTM(4, 8, batch_first=True)
        self.dec = mlp(8, 4)
    def forward(self, x):
        with torch.no_grad():  # <- unreached-parameter
            z, _ = self.enc(x)
        return self.dec(z[:, -1])

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 5, 4)).pow(2).mean().backward()
    o.step()
