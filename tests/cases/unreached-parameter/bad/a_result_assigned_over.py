import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        y = torch.relu(self.a(x))
        z = torch.relu(self.b(y))  # <- unreached-parameter
        z = torch.relu(self.c(y))
        return z

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
