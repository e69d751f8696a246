import copy

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

average = copy.deepcopy(model).requires_grad_(False)
for epoch in range(4):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.data.mul_(0.9).add_(fast.data, alpha=0.1)
    stored = [p.data for p in model.parameters()]
    for p, slow in zip(model.parameters(), average.parameters()):
        p.data = slow.data
    with torch.no_grad():
        print(loss_fn(model(x), y).item())
    for p, value in zip(model.parameters(), stored):
        p.data = value
