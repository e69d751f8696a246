import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
for epoch in range(2):
    for step, x in enumerate(torch.randn(16, 8, 3), start=1):
        (model(x).pow(2).mean() / accumulate).backward()
        if (step + 1) % accumulate == 0:  # <- stale-grad
            opt.step()  # also note: uneven-accumulation
            opt.zero_grad()
