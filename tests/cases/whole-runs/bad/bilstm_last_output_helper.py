import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def last(seq):
    return seq[:, -1]  # <- zero-gradient


class C(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6)
        self.r = nn.LSTM(6, 5, bidirectional=True, batch_first=True)
        self.f = nn.Linear(10, 2)

    def forward(self, x):
        o, _ = self.r(self.e(x))
        return self.f(last(o))


m = C()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    l = F.cross_entropy(m(torch.randint(20, (4, 7))), torch.randint(2, (4,)))
    o.zero_grad()
    l.backward()
    o.step()
