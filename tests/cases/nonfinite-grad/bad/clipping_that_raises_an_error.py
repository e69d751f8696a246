import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

for _ in range(3):
    opt.zero_grad()
    x = torch.randn(8, 4)
    (net(x) * 0.0).sqrt().sum().backward()  # <- nonfinite-grad
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
    opt.step()
