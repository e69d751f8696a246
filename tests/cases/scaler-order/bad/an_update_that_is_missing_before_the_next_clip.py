import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
scaler = torch.amp.GradScaler("cpu")
for epoch in range(3):
    for _ in range(2):
        opt.zero_grad()
        scaler.scale(net(torch.randn(8, 4)).pow(2).mean()).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)  # <- scaler-order
    scaler.update()
