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
            opt.step()
            if schedule is not None:
                schedule.step()

opt = torch.optim.SGD(model.parameters(), lr=0.1)
train(opt, torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=21), epochs=2)
