import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
count = 0
for epoch in range(4):
    for x in torch.randn(5, 8, 3):
        (model(x).pow(2).mean() / 4).backward()
        count += 1
        if count % 4 == 0:
            opt.step()
            opt.zero_grad()
