import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

for _ in range(4):
    states, kept = [], []
    for _ in range(12):
        x, _ = batch()
        states.append(x)
        kept.append(nn.functional.logsigmoid(model(x)))
    old = torch.stack(kept).detach()
    for _ in range(3):
        new = nn.functional.logsigmoid(model(torch.stack(states)))
        optimizer.zero_grad()
        (-(new - old).exp().mean()).backward()
        optimizer.step()
