import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(6, 5, 4)
_, (h, c) = nn.LSTM(4, 8, 2, bidirectional=True)(x)
h.permute(1, 0, 2).reshape(5, -1).sum().backward()
_, h = nn.GRU(4, 8, 2)(x)
h.view(2, 1, 5, 8).sum().backward()
