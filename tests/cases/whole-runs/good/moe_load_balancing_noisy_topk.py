import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 4)
        self.n = nn.Linear(8, 4)
        self.e = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        lg = self.g(x) + torch.randn(len(x), 4) * F.softplus(self.n(x))
        v, i = lg.topk(2, 1)
        w = torch.zeros_like(lg).scatter(1, i, v.softmax(1))
        return sum(w[:, k : k + 1] * e(x) for k, e in enumerate(self.e)), w.mean(0)


m, h = MoE(), nn.Linear(8, 3)
o = torch.optim.Adam([*m.parameters(), *h.parameters()])
for _ in range(10):
    y, load = m(torch.randn(16, 8))
    loss = F.cross_entropy(h(y), torch.randint(3, (16,))) + load.var()
    o.zero_grad()
    loss.backward()
    o.step()
