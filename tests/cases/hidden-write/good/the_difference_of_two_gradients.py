import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(8, 3)
way = [torch.randn_like(p) for p in model.parameters()]
for _ in range(2):
    grads = []
    for shift in (0.01, -0.02):
        for p, step in zip(model.parameters(), way):
            p.data.add_(step, alpha=shift)
        grads.append(torch.autograd.grad(model(x).pow(2).mean(), model.parameters()))
    for p, step in zip(model.parameters(), way):
        p.data.add_(step, alpha=0.01)
