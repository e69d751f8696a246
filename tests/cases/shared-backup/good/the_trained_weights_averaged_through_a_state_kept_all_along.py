import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

state = model.state_dict()
for epoch in range(4):
    old = {name: value.clone() for name, value in state.items()}
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    for name in state:
        if name.endswith("weight"):
            state[name].lerp_(old[name], 0.5)
    model.load_state_dict(state)
