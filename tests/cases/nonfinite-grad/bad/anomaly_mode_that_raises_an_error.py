import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

with torch.autograd.set_detect_anomaly(True):
    for _ in range(3):
        opt.zero_grad()
        x = torch.randn(8, 4)
        length = (net(x) * 0.0).pow(2).sum(1).sqrt()  # <- nonfinite-grad
        (length * 0.0).sum().backward()
        opt.step()
