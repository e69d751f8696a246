import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.temps, self.net = nn.ParameterList(nn.Parameter(torch.rand(())) for _ in range(2)), mlp(4, 2)
    def forward(self, x):
        temps = [t.exp().item() for t in self.temps]  # <- unreached-parameter
        return self.net(x) / torch.tensor(temps)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
