import torch
from torch import nn

torch.manual_seed(0)

x = nn.Linear(8, 8)(torch.randn(6, 5, 8))
x.view(6, 5, 2, 4).transpose(1, 2).reshape(12, 5, 4).sum().backward()
