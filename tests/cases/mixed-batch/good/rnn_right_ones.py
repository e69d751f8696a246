import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(6, 5, 4)
o, h = nn.LSTM(4, 8)(x); o[-1].mean().backward()
o, h = nn.LSTM(4, 8, batch_first=True)(x); o[:, -1].mean().backward()
o, h = nn.GRU(4, 8)(x.transpose(0, 1)); o.transpose(0, 1)[:, -1].mean().backward()
o, h = nn.GRU(4, 8)(x); h[-1].mean().backward()
o, h = nn.RNN(4, 8)(x); o.mean().backward()
