import torch

torch.manual_seed(0)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor  # <- grad-shape

x = torch.randn(5, 4, requires_grad=True)
Scale.apply(x, 3.0).sum().backward()
