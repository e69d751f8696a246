import warnings

import torch
from torch import nn

torch.manual_seed(0)

warnings.simplefilter("ignore")
m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)


def train_one_batch(x):
    o.zero_grad()
    l = m(x).pow(2).mean()
    l.backward()
    sch.step()  # <- scheduler-steps
    o.step()
    return l.item()


for _ in range(10):
    train_one_batch(torch.randn(8, 4))
