import torch
from torch import nn

torch.manual_seed(0)

shared, heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
weights = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([*shared.parameters(), *heads.parameters()])
opt_w = torch.optim.Adam([weights])
for _ in range(3):
    f = torch.tanh(shared(torch.randn(8, 3)))
    losses = torch.stack([head(f).pow(2).mean() for head in heads])
    opt.zero_grad()
    (weights * losses).sum().backward(retain_graph=True)
    opt_w.zero_grad()
    norms = torch.stack([
        torch.autograd.grad(w * l, shared.weight, retain_graph=True, create_graph=True)[0].norm()
        for w, l in zip(weights, losses)
    ])
    weights.grad = torch.autograd.grad((norms - norms.mean().detach()).abs().sum(), weights)[0]
    opt.step()
    opt_w.step()
