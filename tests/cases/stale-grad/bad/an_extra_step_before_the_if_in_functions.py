import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def micro_step(x):
    (model(x).pow(2).mean() / 2).backward()
    optimizer.step()  # <- stale-grad

def update():
    optimizer.step()  # also step-without-grad
    optimizer.zero_grad()

for i in range(8):
    micro_step(torch.randn(8, 3))
    if i % 2:
        update()
