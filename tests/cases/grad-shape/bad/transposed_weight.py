import torch
from torch import nn

torch.manual_seed(0)

class Mult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gw = x.t() @ g
        return g @ w, gw  # <- grad-shape

w = nn.Parameter(torch.randn(3, 4))
Mult.apply(torch.randn(5, 4), w).sum().backward()
