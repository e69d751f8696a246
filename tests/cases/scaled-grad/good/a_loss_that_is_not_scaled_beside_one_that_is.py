import torch
from torch import nn

torch.manual_seed(0)

model, other = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
plain = torch.optim.SGD(other.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(4):
    optimizer.zero_grad()
    plain.zero_grad()
    scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
    (other(torch.randn(8, 3)).pow(2).mean() * 2).backward()
    scaler.step(optimizer)
    plain.step()
    scaler.update()
