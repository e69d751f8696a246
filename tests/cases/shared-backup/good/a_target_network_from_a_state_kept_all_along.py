import copy

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

target = copy.deepcopy(model).requires_grad_(False)
online = model.state_dict()
for epoch in range(6):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y + 0.9 * target(x))
    loss.backward()
    optimizer.step()
    if epoch % 2:
        target.load_state_dict(online)
