import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

before = [p.detach() for p in model.parameters()]  # <- shared-backup
for epoch in range(4):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    if not torch.isfinite(loss) or epoch == 3:
        with torch.no_grad():
            for p, value in zip(model.parameters(), before):
                p.copy_(value)
