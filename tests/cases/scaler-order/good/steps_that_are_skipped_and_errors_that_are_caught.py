import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**100)
for _ in range(6):
    opt.zero_grad()
    scaler.scale(net(torch.randn(8, 4)).pow(2).mean()).backward()
    scaler.unscale_(opt)
    try:
        scaler.unscale_(opt)
    except RuntimeError:
        pass
    scaler.step(opt)
    scaler.update()
