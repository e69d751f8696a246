import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))
opt = torch.optim.SGD(blocks.parameters(), lr=0.1)
for reentrant in (True, False):
    x = torch.randn(8, 4, requires_grad=True)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=reentrant)
    opt.zero_grad()
    x.pow(2).mean().backward()
    opt.step()
