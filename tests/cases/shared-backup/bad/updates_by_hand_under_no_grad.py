import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

start = dict(model.state_dict())  # <- shared-backup
for epoch in range(4):
    model.zero_grad()
    loss_fn(model(x), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
model.load_state_dict(start)
