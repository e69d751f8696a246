import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


y = x = torch.ones(1, requires_grad=True)
for _ in range(95_000):
    y = y * 1.0
y.sum().backward()
