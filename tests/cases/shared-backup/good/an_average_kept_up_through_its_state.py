import copy

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

average = copy.deepcopy(model)
for epoch in range(4):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    state = average.state_dict()
    for name, value in model.state_dict().items():
        state[name].mul_(0.9).add_(value, alpha=0.1)
    average.load_state_dict(state)
with torch.no_grad():
    print(loss_fn(average(x), y).item())
