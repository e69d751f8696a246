import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.weights = mlp(), nn.Parameter(torch.ones(2))
    def forward(self, x):
        return sum(w * y for w, y in zip(self.weights.tolist(), self.net(x).unbind(1)))  # <- unreached-parameter

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    print(m.weights.tolist())
