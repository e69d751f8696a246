import torch
from torch import nn

torch.manual_seed(0)

def sgd(params, lr):
    for p in params:
        p.data = p.data - lr * p.grad

model = nn.Linear(3, 1)
for _ in range(3):
    model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
    sgd(model.parameters(), 0.1)
