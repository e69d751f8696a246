import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.randn(10, 8, 3)
for epoch in range(3):
    for i, x in enumerate(batches):
        (model(x).pow(2).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(batches):
            opt.step()  # also note: uneven-accumulation
            opt.zero_grad()
