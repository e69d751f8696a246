import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 3)
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        moves = [0.05 * p.grad / (p.grad.norm() + 1e-12) for p in model.parameters()]
        for p, e in zip(model.parameters(), moves):
            p.add_(e)
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        for p, e in zip(model.parameters(), moves):
            p.sub_(e)
    opt.step()
