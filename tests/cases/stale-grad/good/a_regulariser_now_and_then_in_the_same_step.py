import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.Adam(model.parameters())
for step in range(6):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    if step % 3 == 0:
        sum(p.abs().sum() for p in model.parameters()).backward()
    opt.step()
