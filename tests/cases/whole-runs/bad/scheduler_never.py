import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)


def build(m):
    opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [30, 60])
    return opt, sched


opt = torch.optim.SGD(m.parameters(), 0.1)
lr_sched = torch.optim.lr_scheduler.MultiStepLR(opt, [3, 6])  # <- scheduler-steps
for ep in range(10):
    for _ in range(3):
        opt.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
