import torch
from torch import nn

torch.manual_seed(0)

c, r = nn.Conv2d(1, 3, 3), nn.LSTM(12, 8)
f = c(torch.randn(5, 1, 6, 9))
s = f.view(7, 5, 12)  # <- mixed-batch
r(s)[0][-1].sum().backward()
