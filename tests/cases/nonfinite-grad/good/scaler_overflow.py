import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
sc = torch.amp.GradScaler("cpu", init_scale=2.0**127)
for _ in range(12):
    loss = net(torch.randn(3, 4)).mul(3).pow(2).mean()
    opt.zero_grad()
    sc.scale(loss).backward()
    sc.step(opt)
    sc.update()
