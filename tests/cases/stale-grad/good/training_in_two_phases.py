import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
for lr in (0.1, 0.01):
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(3):
        opt.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
