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

schedule = lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=7)
for epoch in range(2):
    for i, (x, y) in enumerate(data):
        backward(x, y)
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
            schedule.step()
