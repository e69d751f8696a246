import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

for epoch in range(3):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
p = model[0].bias
original = p.data
values = []
for sign in (1, -1):
    p.data = original + sign * 1e-3
    with torch.no_grad():
        values.append(loss_fn(model(x), y).item())
    p.data = original
print((values[0] - values[1]) / 2e-3)
