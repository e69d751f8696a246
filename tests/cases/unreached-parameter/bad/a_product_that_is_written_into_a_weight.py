import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.v = nn.Parameter(torch.randn(2, 1)), nn.Parameter(torch.randn(1, 4))
        self.lin = nn.Linear(4, 2)
    def forward(self, x):
        self.lin.weight.data.copy_(self.u @ self.v)  # <- unreached-parameter
        return self.lin(x)

m = M()
o = torch.optim.Adam(m.parameters())
for i in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
