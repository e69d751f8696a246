import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Centres(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Parameter(torch.randn(3, 8))
    def forward(self, x, y):
        return (x - self.points[y]).pow(2).sum(1).mean()

front, m, centres = nn.Linear(4, 4), mlp(4, 8), Centres()
o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
for _ in range(6):
    o.zero_grad()
    centres(m(front(torch.randn(8, 4))), torch.randint(3, (8,))).backward()
    o.step()
