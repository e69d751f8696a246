import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(4):
    x, climb = torch.randn(8, 3), {}
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            climb[p] = 0.05 * p.grad / p.grad.norm()
            p.add_(climb[p])
    model(x).pow(2).mean().backward()
    for p in model.parameters():
        if turn % 2:
            p.data.sub_(climb[p])
        else:
            with torch.no_grad():
                p -= climb[p]
    opt.step()
    opt.zero_grad()
