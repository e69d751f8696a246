import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.randn(8, 3)).pow(2).mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.05 * p.grad
    model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
    opt.step()
    opt.zero_grad()
