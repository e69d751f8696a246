import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(10)]

def train(opt, schedule=None, epochs=1):
    for epoch in range(epochs):
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()  # <- no-effect-step
            if schedule is not None:
                schedule.step()

train(torch.optim.SGD([{"params": [model.weight], "lr": 0.0}, {"params": [model.bias]}], lr=0.0, momentum=0.9))
