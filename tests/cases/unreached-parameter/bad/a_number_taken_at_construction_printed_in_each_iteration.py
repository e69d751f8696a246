import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Gate(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold
    def forward(self, x):
        return torch.relu(x - self.threshold)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.tensor(1.0))
        self.net = mlp(4, 2)
        self.gate = Gate(self.level.item())  # <- unreached-parameter
    def forward(self, x):
        return self.gate(self.net(x))

m = M()
o = torch.optim.Adam(m.parameters())
levels = []
for _ in range(6):
    o.zero_grad()
    F.mse_loss(m(torch.randn(8, 4)), torch.ones(8, 2)).backward()
    o.step()
    level = m.level.item()
    levels.append(level)
    print(f"{m.level.item():.3f}")
