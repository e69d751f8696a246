import torch
from torch import nn

torch.manual_seed(0)

x = nn.Conv2d(1, 8, 3, padding=1)(torch.randn(6, 1, 4, 4))
x.view(6, 8, 16).transpose(1, 2).sum().backward(retain_graph=True)
x.view(2, 3, 8, 4, 4).mean(1).sum().backward(retain_graph=True)
x.view(6, 2, 4, 16).sum(1).mean().backward()
