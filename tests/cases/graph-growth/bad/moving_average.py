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

class Meter:
    def __init__(self):
        self.average = torch.zeros(())

    def update(self, loss):
        self.average = 0.9 * self.average + 0.1 * loss  # <- graph-growth

meter = Meter()
for _ in range(15):
    meter.update(step())
