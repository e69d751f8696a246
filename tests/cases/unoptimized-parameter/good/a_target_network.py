import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

q = mlp(4, 2)
target = copy.deepcopy(q)
o = torch.optim.Adam(q.parameters())
for i in range(12):
    s = torch.randn(8, 4)
    y = torch.rand(8) + 0.9 * target(s).max(1).values.detach()
    l = F.smooth_l1_loss(q(s).max(1).values, y)
    o.zero_grad()
    l.backward()
    o.step()
    if i % 5 == 4:
        target.load_state_dict(q.state_dict())
