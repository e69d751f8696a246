import torch
from torch import nn

torch.manual_seed(0)

class Bias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b
    @staticmethod
    def backward(ctx, g):
        return g, g

b = nn.Parameter(torch.zeros(3))
Bias.apply(torch.randn(5, 3), b).sum().backward()
