import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
net[0].requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad(set_to_none=False)
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
