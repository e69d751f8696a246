import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
swa, opt = AveragedModel(model), torch.optim.SGD(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
swa_sched = SWALR(opt, swa_lr=0.05)
data = [torch.randn(8, 3) for _ in range(2)]
for epoch in range(4):
    for x in data:
        opt.zero_grad()
        model(x).pow(2).mean().backward()
        opt.step()
    if epoch > 1:
        swa.update_parameters(model)
        swa_sched.step()
    else:
        sched.step()
update_bn(data, swa)
