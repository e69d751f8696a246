import torch

torch.manual_seed(0)

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

h = torch.randn(3, requires_grad=True) * 1.0
y = Square.apply(h)
h += 1  # <- inplace-saved
(y + h).sum().backward()
