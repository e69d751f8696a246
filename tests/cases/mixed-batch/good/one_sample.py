import torch
from torch import nn

torch.manual_seed(0)

o, _ = nn.LSTM(4, 8)(torch.randn(6, 1, 4)); o[:, -1].mean().backward()
