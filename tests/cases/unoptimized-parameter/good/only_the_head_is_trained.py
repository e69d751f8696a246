import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(4, 8)
        self.fc = nn.Linear(8, 2)
    def forward(self, x):
        return self.fc(self.body(x))

m = M()
o = torch.optim.SGD(m.fc.parameters(), 0.01)
for _ in range(6):
    o.zero_grad()
    F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
    o.step()
