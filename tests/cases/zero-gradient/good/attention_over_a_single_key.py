import torch
from torch import nn

torch.manual_seed(0)

net = nn.MultiheadAttention(8, 2, batch_first=True)
opt = torch.optim.Adam(net.parameters())
for _ in range(8):
    x, context = torch.randn(4, 3, 8), torch.randn(4, 1, 8)
    opt.zero_grad()
    net(x, context, context)[0].pow(2).mean().backward()
    opt.step()
