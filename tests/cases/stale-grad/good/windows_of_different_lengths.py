import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
seen = 0
for length in (3, 1, 4, 1, 5, 9, 2, 6):
    model(torch.randn(length, 3)).pow(2).sum().backward()
    seen += length
    if seen >= 8:
        opt.step()
        opt.zero_grad()
        seen = 0
