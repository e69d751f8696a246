import torch
from torch import nn

torch.manual_seed(0)

conv = nn.Conv2d(3, 12, 1)
bias = conv.bias.view(3, -1)
bias[:, 1] += 2.0  # <- inplace-leaf
