import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(4, 8)
        self.heads = nn.ModuleDict({task: nn.Linear(8, 2) for task in ("first", "second", "third")})  # also note: unreached-parameter
    def forward(self, x, task):
        return self.heads[task](self.body(x))

m = M()
teacher = copy.deepcopy(m).requires_grad_(False)
o = torch.optim.Adam(m.parameters())
for i in range(6):
    loss = m(torch.randn(8, 4), "first").pow(2).mean()
    o.zero_grad()
    loss.backward()
    o.step()
    saved = {name: p.clone() for name, p in m.state_dict().items()}
    with torch.no_grad():
        for mine, own in zip(teacher.parameters(), m.parameters()):
            mine.lerp_(own.detach(), 0.1)
