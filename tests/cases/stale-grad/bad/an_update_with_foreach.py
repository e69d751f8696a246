import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
params = list(model.parameters())
for _ in range(3):
    model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
    with torch.no_grad():
        torch._foreach_add_(params, [p.grad for p in params], alpha=-0.1)
