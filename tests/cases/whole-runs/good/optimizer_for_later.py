import torch
from torch import nn

torch.manual_seed(0)

m, d = nn.Linear(4, 4), nn.Linear(4, 1)
om, od = torch.optim.Adam(m.parameters()), torch.optim.Adam(d.parameters())
START = 100
for i in range(10):
    om.zero_grad()
    l = m(torch.randn(8, 4)).pow(2).mean()
    if i > START:
        l = l - d(m(torch.randn(8, 4))).mean()
    l.backward()
    om.step()
    if i > START:
        od.zero_grad()
        d(torch.randn(8, 4)).mean().backward()
        od.step()
