import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

b, h = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 2)
b.requires_grad_(False)
b.eval()
o = torch.optim.Adam(h.parameters(), 1e-3)


def ep(tr):
    for _ in range(4):
        x, y = torch.randn(8, 4), torch.randint(2, (8,))
        l = F.cross_entropy(h(b(x)), y)
        o.zero_grad()
        l.backward()
        o.step()
    b.eval()
    h.eval()
    with torch.no_grad():
        h(b(torch.randn(4, 4)))
    h.train()
    if tr:
        b.train()


ep(False)
ep(False)
b.requires_grad_(True)
b.train()
o = torch.optim.Adam([*b.parameters(), *h.parameters()], 1e-4)
ep(True)
ep(True)
