import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.heads = mlp(4, 2), nn.ModuleList(nn.Linear(2, 1) for _ in range(2))  # also note: unreached-parameter
    def forward(self, x, head=0):
        return self.heads[head](self.net(x))

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    metrics = {"bias": m.heads[1].bias.item(), "norm": m.heads[1].weight.norm().item()}  # also note: unreached-parameter
