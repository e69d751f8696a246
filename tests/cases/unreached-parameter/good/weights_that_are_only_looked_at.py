import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))  # also note: unreached-parameter

m = nn.ModuleDict({"used": mlp(), "spare": mlp()})
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m["used"](torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    with torch.no_grad():
        print([p.view(-1)[0].item() for p in m.parameters()])
