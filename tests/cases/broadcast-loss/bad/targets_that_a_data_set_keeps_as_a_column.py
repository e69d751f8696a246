import torch
from torch import nn

torch.manual_seed(0)

body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 3), nn.Linear(16, 1)  # also note: unreached-parameter
params = [*body.parameters(), *policy.parameters(), *value.parameters()]
opt = torch.optim.Adam(params)

def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

class Data:
    def __init__(self):
        self.x = torch.randn(32, 4)
        self.y = self.x.sum(1)[:, None]

    def batch(self, rows):
        return self.x[rows], self.y[rows]

def squared(pred, y):
    return ((pred - y) ** 2).mean()  # <- broadcast-loss

data = Data()
for _ in range(4):
    x, y = data.batch(torch.randperm(32)[:16])
    update(squared(value(body(x)).flatten(), y))
