import torch
from torch import nn
from torch.autograd import Function

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def train(loss):
    for _ in range(4):
        opt.zero_grad()
        loss(net(torch.randn(6, 4))).backward()
        opt.step()

class Blend(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * x + y * y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g, None  # <- wrong-backward

train(lambda out: Blend.apply(out, out * 2).mean())
