import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 8)
        self.gains = [torch.ones(8, requires_grad=True) for _ in range(2)]  # <- unoptimized-parameter
    def forward(self, x):
        x = self.inp(x)
        for gain in self.gains:
            x = torch.tanh(x * gain)
        return x

def train():
    m = M()
    o = torch.optim.SGD(m.parameters(), 0.1)
    for _ in range(6):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()

train()
