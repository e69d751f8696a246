import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
net = net.half()  # <- scaler-order
opt = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
for _ in range(3):
    opt.zero_grad()
    scaler.scale(net(torch.randn(8, 4).half()).float().pow(2).mean()).backward()
    scaler.step(opt)
    scaler.update()
