import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.fast = mlp(4, 2), nn.Parameter(torch.zeros(2))

m = Meta()
o = torch.optim.Adam(m.parameters(), 0.01)
for _ in range(8):
    o.zero_grad()
    (m.net(torch.randn(8, 4)) + m.fast).pow(2).mean().backward()
    o.step()
    m.fast = nn.Parameter(m.fast.detach() - 0.1 * m.fast.grad)
