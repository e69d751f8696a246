import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Uncertainty(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(2))
    def forward(self, a, b):
        return a * torch.exp(-self.log_var[0]) + b * torch.exp(-self.log_var[1]) + self.log_var.sum()

m, crit = (mlp(4, 2), Uncertainty())
o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
for _ in range(6):
    out = m(torch.randn(8, 4))
    o.zero_grad()
    crit(out[:, 0].pow(2).mean(), out[:, 1].pow(2).mean()).backward()
    o.step()
