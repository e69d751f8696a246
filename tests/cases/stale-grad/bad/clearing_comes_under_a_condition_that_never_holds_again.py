import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    if step == 0:
        opt.zero_grad()
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()  # <- stale-grad
    opt.step()
