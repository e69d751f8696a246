import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
hs = nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
o = torch.optim.Adam([*m.parameters(), *hs.parameters()], 1e-3)


def balance(gs):
    n = torch.stack([g.norm() for g in gs])
    return n.mean() / n  # <- nonfinite-grad


for it in range(24):
    x = torch.randn(8, 4)
    L = [h(torch.tanh(m(x))).pow(2).mean() for h in hs]
    if it >= 18:
        L[1] = L[1] * 0
    gs = [torch.autograd.grad(l, m.weight, retain_graph=True)[0] for l in L]
    w = balance(gs)
    o.zero_grad()
    sum(L).backward()
    m.weight.grad = sum(a * g for a, g in zip(w, gs))
    o.step()
