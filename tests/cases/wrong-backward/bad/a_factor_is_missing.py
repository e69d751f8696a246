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

class MyExp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (3 * x).exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = g * (3 * x).exp()
        return grad  # <- wrong-backward

train(lambda out: MyExp.apply(out).mean())
