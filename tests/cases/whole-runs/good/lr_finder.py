import copy
import math

import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
st = copy.deepcopy(m.state_dict())
o = torch.optim.SGD(m.parameters(), 1e-7)
s = torch.optim.lr_scheduler.ExponentialLR(o, 3.0)
for i in range(50):
    l = m(torch.randn(16, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
    s.step()
    if not math.isfinite(l.item()) or l.item() > 1e6:
        break
m.load_state_dict(st)
o = torch.optim.Adam(m.parameters())
for i in range(5):
    l = m(torch.randn(16, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
