import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(*[k for _ in range(4) for k in (nn.Linear(8, 8), nn.ReLU())], nn.Linear(8, 2))
o = torch.optim.Adam(m.parameters())


def evaluate(loader):
    m.eval()
    c = 0
    for x, y in loader:
        c += (m(x).argmax(1) == y).sum().item()  # <- unused-graph
    return c


for ep in range(3):
    m.train()
    for _ in range(4):
        l = F.cross_entropy(m(torch.randn(8, 8)), torch.randint(2, (8,)))
        o.zero_grad()
        l.backward()
        o.step()
    evaluate([(torch.randn(4, 8), torch.randint(2, (4,))) for _ in range(4)])
