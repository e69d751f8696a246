import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 3, bias=False)
opt = torch.optim.Adam(net.parameters())
for step in range(6):
    x = torch.randn(4, 3)
    if step == 3:
        x[0] = 0
    d = net(x).pow(2).sum(1)
    dist = torch.sqrt(d)  # <- nonfinite-grad
    loss = dist.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
