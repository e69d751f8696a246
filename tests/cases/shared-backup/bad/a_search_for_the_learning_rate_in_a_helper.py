import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)



def snapshot(model):
    return {
        "epoch": 0,
        "model": {name: value.cpu() for name, value in model.state_dict().items()},  # <- shared-backup
    }


def search(model, optimizer, start):
    for rate in (1e-3, 1e-2, 1e-1):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for batch in range(3):
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        print(rate, loss.item())
        model.load_state_dict(start["model"])


search(model, optimizer, snapshot(model))
