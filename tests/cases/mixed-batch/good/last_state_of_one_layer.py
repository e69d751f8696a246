import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(6, 5, 4)
_, h = nn.GRU(4, 8, batch_first=True)(x)
h[-1].mean().backward()
_, (h, c) = nn.LSTM(4, 8, batch_first=True)(x)
(h[-1] + c[-1]).mean().backward()
_, h = nn.RNN(4, 8, 2)(x)
h[:, -1].mean().backward()
