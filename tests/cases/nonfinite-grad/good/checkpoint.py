import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(3, 3), nn.Softmax(1))
for r in (True, False):
    x = torch.randn(4, 3, requires_grad=True)
    checkpoint(m, x, use_reentrant=r).log().mean().backward()
