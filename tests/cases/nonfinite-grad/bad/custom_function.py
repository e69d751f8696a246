import torch
from torch import nn

torch.manual_seed(0)

class Inv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)
    @staticmethod
    def backward(ctx, g):  # <- nonfinite-grad
        x, = ctx.saved_tensors
        return g / x.clamp(min=0)

w = nn.Parameter(torch.randn(5))
Inv.apply(w).sum().backward()
