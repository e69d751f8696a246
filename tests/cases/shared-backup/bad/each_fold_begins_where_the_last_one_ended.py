import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

initial = {name: value.detach() for name, value in model.state_dict().items()}  # <- shared-backup
for fold in range(3):
    model.load_state_dict(initial)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in range(3):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
