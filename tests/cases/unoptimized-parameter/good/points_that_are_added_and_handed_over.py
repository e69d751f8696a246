import torch
from torch import nn

torch.manual_seed(0)

class Cloud(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Parameter(torch.randn(8, 3))

m = Cloud()
o = torch.optim.Adam(m.parameters(), 0.01)
for step in range(12):
    o.zero_grad()
    m.points.pow(2).sum(1).mean().backward()
    o.step()
    if step % 2:
        old = o.param_groups[0]["params"][0]
        m.points = nn.Parameter(torch.cat([m.points.detach(), torch.randn(4, 3)]))
        o.state.pop(old, None)
        o.param_groups[0]["params"] = [m.points]
