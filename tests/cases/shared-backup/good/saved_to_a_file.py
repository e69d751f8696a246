import io

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

checkpoint = {"model": model.state_dict(), "epoch": 0}
for epoch in range(4):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save(checkpoint, file)
file.seek(0)
model.load_state_dict(torch.load(file)["model"])
