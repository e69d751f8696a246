import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

start = {name: value.detach().clone() for name, value in model.state_dict().items()}
values = [p.data.clone() for p in model.parameters()]
for fold in range(3):
    model.load_state_dict(start)
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    for p, value in zip(model.parameters(), values):
        p.data.copy_(value)
