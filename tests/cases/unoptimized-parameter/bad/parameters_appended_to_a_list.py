import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 8)
        self.gains = []  # <- unoptimized-parameter
        for _ in range(2):
            self.gains.append(nn.Parameter(torch.ones(8)))
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        x = self.inp(x)
        for g in self.gains:
            x = torch.tanh(x * g)
        return self.out(x)

def train():
    m = M()
    o = torch.optim.Adam(m.parameters())
    for _ in range(6):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()

train()
