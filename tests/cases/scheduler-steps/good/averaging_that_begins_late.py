import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler
from torch.optim.swa_utils import SWALR, AveragedModel

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(12)]

def backward(x, y):
    F.mse_loss(model(x), y).backward()

averaged, swa = AveragedModel(model), SWALR(opt, swa_lr=0.05)  # also note: scheduler-steps
schedule = lr_scheduler.CosineAnnealingLR(opt, 20)
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        backward(x, y)
        opt.step()
    if epoch > 10:
        averaged.update_parameters(model)
        swa.step()
    else:
        schedule.step()
