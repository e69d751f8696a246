import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.by_size = mlp(), {}
    def forward(self, x):
        if x.shape[1] not in self.by_size:
            self.by_size[x.shape[1]] = nn.Linear(x.shape[1], 4)  # <- unoptimized-parameter
        return self.out(self.by_size[x.shape[1]](x))

m = M()
o = torch.optim.Adam(m.parameters())
for i in range(8):
    o.zero_grad()
    m(torch.randn(8, 3 + i % 2)).pow(2).mean().backward()
    o.step()
