import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for _ in range(3):
        opt.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
    model.eval()
    x = torch.randn(1, 3, requires_grad=True)
    model(x).sum().backward()
    print(x.grad.abs().sum())
