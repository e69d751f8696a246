import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    loss = model(torch.randn(8, 3)).pow(2).mean() / 2
    loss.backward()  # <- stale-grad
    if (i + 1) % 2 == 0:
        opt.step()
