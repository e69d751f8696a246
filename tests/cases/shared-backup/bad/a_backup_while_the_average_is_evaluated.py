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
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
    backup = model.state_dict()  # <- shared-backup
    model.load_state_dict(average.state_dict())
    with torch.no_grad():
        print(loss_fn(model(x), y).item())
    model.load_state_dict(backup)
