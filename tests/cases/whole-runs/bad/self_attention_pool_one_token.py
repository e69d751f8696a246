import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(8, 1)

    def forward(self, h):
        a = F.softmax(self.w(h), dim=-1)  # <- zero-gradient
        return (a * h).sum(1)


e, p, h = nn.Linear(4, 8), Pool(), nn.Linear(8, 2)
o = torch.optim.Adam([*e.parameters(), *p.parameters(), *h.parameters()])
for _ in range(8):
    l = F.cross_entropy(h(p(torch.tanh(e(torch.randn(6, 5, 4))))), torch.randint(2, (6,)))
    o.zero_grad()
    l.backward()
    o.step()
