import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp(4, 1)
o = torch.optim.Adam(m.parameters(), 0.01)
for _ in range(5):
    x = torch.randn(8, 4)
    ps = dict(m.named_parameters())
    g = torch.autograd.grad(functional_call(m, ps, x).pow(2).mean(), list(ps.values()))
    fast = {k: p - 0.1 * gg for (k, p), gg in zip(ps.items(), g)}
    l = functional_call(m, fast, x).pow(2).mean() + 0.001 * sum(((v ** 2).sum() for v in fast.values()))
    o.zero_grad()
    l.backward()
    o.step()
