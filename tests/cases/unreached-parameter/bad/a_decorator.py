import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 8)
    @torch.no_grad()  # <- unreached-parameter
    def forward(self, x):
        return self.net(x)

enc, dec = Encoder(), nn.Linear(8, 4)
o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(5):
    o.zero_grad()
    dec(enc(torch.randn(8, 4))).pow(2).mean().backward()
    o.step()
