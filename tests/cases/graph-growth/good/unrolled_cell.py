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

cell, readout = nn.LSTMCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()])
for _ in range(10):
    h = c = torch.zeros(2, 8)
    outputs = []
    for x in torch.randn(30, 2, 3):
        h, c = cell(x, (h, c))
        outputs.append(readout(h))
    optimizer.zero_grad()
    torch.stack(outputs).pow(2).mean().backward()
    optimizer.step()
