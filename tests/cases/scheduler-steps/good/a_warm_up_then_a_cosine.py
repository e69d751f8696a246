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

first = lr_scheduler.LinearLR(opt, 0.1, total_iters=3)
then = lr_scheduler.CosineAnnealingLR(opt, 9)
schedule = lr_scheduler.SequentialLR(opt, [first, then], milestones=[3])
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
