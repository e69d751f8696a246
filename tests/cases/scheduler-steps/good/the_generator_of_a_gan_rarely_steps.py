import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(12)]

def backward(x, y):
    F.mse_loss(model(x), y).backward()

other = nn.Linear(3, 1)
rare = torch.optim.SGD(other.parameters(), lr=0.1)
schedules = [lr_scheduler.ExponentialLR(one, 0.99) for one in (opt, rare)]
for i, (x, y) in enumerate(data * 2):
    opt.zero_grad()
    backward(x, y)
    opt.step()
    if i % 3 == 2:
        rare.zero_grad()
        F.mse_loss(other(x), y).backward()
        rare.step()
    for schedule in schedules:
        schedule.step()
