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

schedule = lr_scheduler.OneCycleLR(opt, 0.1, total_steps=13)
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
