import copy

import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
ema = copy.deepcopy(m).requires_grad_(False)
o = torch.optim.Adam(m.parameters())
for e in range(3):
    m.train()
    for _ in range(4):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()
        for a, b in zip(ema.parameters(), m.parameters()):
            a.data.mul_(0.9).add_(b.data, alpha=0.1)
    ema.eval()
    with torch.no_grad():
        ema(torch.randn(4, 4)).mean()
