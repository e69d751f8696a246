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

class Split(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.shape, ctx.index = x.shape, index
        return x[:, index] * 2, x.sum(1)

    @staticmethod
    def backward(ctx, g, h):
        grad = h[:, None].expand(ctx.shape).clone()
        grad[:, ctx.index] += 2 * g
        return grad, None

def loss(out):
    a, b = Split.apply(out, torch.tensor([0, 2]))
    return a.pow(2).mean() + b.pow(2).mean()

train(loss)
