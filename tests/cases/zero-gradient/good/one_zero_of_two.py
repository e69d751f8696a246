import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

a, b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(2, 2))
gain, bias = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
o = torch.optim.Adam([a, b, gain, bias])
for _ in range(8):
    o.zero_grad()
    x = torch.randn(8, 4)
    (F.linear(F.linear(x, a), b) + gain * x[:, :2] + bias - 1).pow(2).mean().backward()
    o.step()
