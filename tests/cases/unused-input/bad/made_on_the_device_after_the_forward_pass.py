import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)

class Penalty:
    def __call__(self, critic, real):
        score = critic(real)
        real = real.to(torch.float64)  # <- unused-input
        return torch.autograd.grad(score.sum(), real, create_graph=True)[0].norm()

Penalty()(net, x)
