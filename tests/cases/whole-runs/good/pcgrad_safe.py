import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
h = [nn.Linear(4, 1) for _ in range(2)]
ps = list(m.parameters())
o = torch.optim.SGD([*ps, *h[0].parameters(), *h[1].parameters()], 0.01)
for _ in range(10):
    x = torch.randn(8, 4)
    L = [k(torch.tanh(m(x))).pow(2).mean() for k in h]
    o.zero_grad()
    gs = [torch.autograd.grad(l, ps, retain_graph=True) for l in L]
    (L[0] + L[1]).backward()
    for p, a, b in zip(ps, *gs):
        d = (a * b).sum()
        p.grad = (a + b) if d >= 0 else a - d / (b.norm() ** 2 + 1e-12) * b + b
    o.step()
