import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    x = torch.randn(8, 3)
    opt.zero_grad()
    if i > 2:
        model.eval()
        (model(x + 0.1).pow(2).mean() / 2).backward()
    model.train()
    (model(x).pow(2).mean() / 2).backward()
    opt.step()
