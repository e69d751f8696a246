import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = mlp(4, 8).eval()
        self.fc = nn.Linear(8, 2)
    def forward(self, x):
        with torch.no_grad():  # also note: unreached-parameter
            h = self.backbone(x)
        return self.fc(h)

m = M()
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
