import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, warm):
        ctx.save_for_backward(x, w)
        ctx.warm = warm
        return x * w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        if ctx.warm:
            return grad * w, None, None
        return grad * w, (grad * x).sum(0) if ctx.needs_input_grad[1] else None, None

net, w, frozen = mlp(4, 2), nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
o = torch.optim.Adam([*net.parameters(), w, frozen])
for i in range(8):
    o.zero_grad()
    h = Scale.apply(net(torch.randn(8, 4)), w, i < 5)
    Scale.apply(h, frozen, False).pow(2).mean().backward()
    o.step()
