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

class Spike(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + 10 * v.abs()) ** 2

train(lambda out: Spike.apply(out).mean())
