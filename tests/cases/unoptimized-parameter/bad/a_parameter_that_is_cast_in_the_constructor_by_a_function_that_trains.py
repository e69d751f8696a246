import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 2).double()
        self.scale = nn.Parameter(torch.ones(2)).to(torch.float64)  # <- unoptimized-parameter
    def forward(self, x):
        return self.net(x) * self.scale

def train():
    m = Scaled()
    o = torch.optim.Adam(m.parameters())
    for _ in range(6):
        loss = m(torch.randn(8, 4).double()).pow(2).mean()
        o.zero_grad()
        loss.backward()
        o.step()

train()
