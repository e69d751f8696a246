import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    grads = []
    for task in range(2):
        opt.zero_grad()
        model(torch.randn(8, 3))[:, task].pow(2).mean().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for p, *parts in zip(model.parameters(), *grads):
        p.grad = sum(parts) / 2
    opt.step()
