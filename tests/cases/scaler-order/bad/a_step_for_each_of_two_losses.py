import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    out = net(torch.randn(8, 4))
    opt.zero_grad()
    scaler.scale(out.pow(2).mean() + out.abs().mean()).backward()
    scaler.step(opt)
    scaler.step(opt)  # <- scaler-order
    scaler.update()
