import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
model.eval()  # also note: wrong-mode
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    (model(torch.randn(8, 3)).pow(2).mean() / 2).backward()
    if i % 2:
        opt.step()
        opt.zero_grad()
