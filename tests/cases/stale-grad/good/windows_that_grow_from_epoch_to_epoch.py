import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    window = 2 if epoch == 0 else 3
    for i in range(6):
        (model(torch.randn(8, 3)).pow(2).mean() / window).backward()
        if (i + 1) % window == 0:
            opt.step()
            opt.zero_grad()
