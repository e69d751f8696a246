import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class T(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6, padding_idx=0)
        self.r = nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.f = nn.Linear(10, 2)

    def forward(self, x, n):
        p = nn.utils.rnn.pack_padded_sequence(self.e(x), n, batch_first=True, enforce_sorted=False)
        o, (h, c) = self.r(p)
        return self.f(torch.cat([h[-2], h[-1]], 1))


m = T()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x = torch.randint(1, 20, (4, 7))
    n = torch.randint(2, 8, (4,))
    l = F.cross_entropy(m(x, n), torch.randint(2, (4,)))
    o.zero_grad()
    l.backward()
    o.step()
