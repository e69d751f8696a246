import torch
from torch import nn

torch.manual_seed(0)

trunk, heads = nn.Linear(4, 6), nn.ModuleList(nn.Linear(6, 1) for _ in range(2))
params = list(trunk.parameters())
opt = torch.optim.SGD([*params, *heads.parameters()], lr=0.1)
for _ in range(3):
    f = torch.tanh(trunk(torch.randn(8, 4)))
    losses = [head(f).pow(2).mean() for head in heads]
    opt.zero_grad()
    flat = []
    for i, loss in enumerate(losses):
        grads = torch.autograd.grad(loss, params, retain_graph=True)
        flat.append(torch.cat([g.flatten() for g in grads]))
    sum(losses).backward()
    a, b = flat
    if a @ b < 0:
        a = a - (a @ b) / b.pow(2).sum() * b
    at = 0
    for p in params:
        p.grad = (a + b)[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
