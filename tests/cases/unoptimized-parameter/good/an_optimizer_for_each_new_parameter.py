import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Code(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.net = nn.Parameter(torch.zeros(4)), mlp(4, 2)

m = Code()
for _ in range(5):
    m.z = nn.Parameter(torch.randn(4))
    o = torch.optim.Adam(m.parameters(), 0.01)
    for _ in range(4):
        o.zero_grad()
        m.net(m.z).pow(2).mean().backward()
        o.step()
