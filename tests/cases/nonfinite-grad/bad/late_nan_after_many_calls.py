import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 3, bias=False)
opt = torch.optim.SGD(net.parameters(), 1e-3)
for step in range(60):
    x = torch.randn(4, 3)
    if step == 53:
        x[0] = 0
    dist = net(x).pow(2).sum(1).sqrt()  # <- nonfinite-grad
    loss = dist.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
