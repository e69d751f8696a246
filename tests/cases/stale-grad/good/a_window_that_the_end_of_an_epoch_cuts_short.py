import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for i in range(7):
        (model(torch.randn(8, 3)).pow(2).mean() / 2).backward()
        if i % 2:
            opt.step()
            opt.zero_grad()
    opt.step()  # also note: uneven-accumulation
    opt.zero_grad()
