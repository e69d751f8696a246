import copy

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)
held_out = torch.randn(16, 4), torch.randn(16, 1)

best, best_loss = None, float("inf")
for epoch in range(6):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        score = loss_fn(model(held_out[0]), held_out[1]).item()
    if score < best_loss:
        best, best_loss = copy.deepcopy(model.state_dict()), score

model.load_state_dict(best)
