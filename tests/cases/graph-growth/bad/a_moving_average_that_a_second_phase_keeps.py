import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

class Meter:
    def __init__(self):
        self.value = 0.0

    def update(self, value):
        self.value = 0.9 * self.value + 0.1 * value  # <- graph-growth

meter = Meter()

def epoch(number, log):
    for _ in range(30):
        loss = model(torch.randn(8, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss if log else loss.item())

for number in range(4):
    epoch(number, number >= 2)
