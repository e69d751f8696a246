import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(4, 8)
        self.head = None
    def forward(self, x):
        h = self.body(x)
        if self.head is None:
            self.head = nn.Linear(h.shape[1], 2)  # <- unoptimized-parameter
        return self.head(h)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
