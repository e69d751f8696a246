import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))  # also note: unreached-parameter

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList((mlp() for _ in range(4)))
        self.gate = nn.Linear(4, 4)
    def forward(self, x):
        g = self.gate(x).softmax(-1)
        k = g.mean(0).argmax().item()
        return self.experts[k](x) * g[:, k:k + 1]

m = M()
o = torch.optim.SGD(m.parameters(), 0.01)
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
