import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

state = model.state_dict()
before = {name: value.norm().item() for name, value in state.items()}
for epoch in range(4):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    for name, value in state.items():
        print(name, (value.norm() - before[name]).item())
