import torch
from torch import nn

torch.manual_seed(0)

net = nn.Conv2d(1, 2, 3)
start = net(torch.rand(1, 1, 8, 8)).mean(1, keepdim=True).detach()
image = start.requires_grad_()
opt = torch.optim.Adam([image], lr=0.1)
for _ in range(3):
    loss = image.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
