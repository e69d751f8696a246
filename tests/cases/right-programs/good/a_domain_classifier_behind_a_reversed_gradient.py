import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None

body, label, domain = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
opt = torch.optim.SGD([*body.parameters(), *label.parameters(), *domain.parameters()], lr=0.1)
for _ in range(3):
    f = torch.relu(body(torch.randn(8, 4)))
    loss = F.cross_entropy(label(f), torch.randint(0, 3, (8,)))
    loss = loss + F.cross_entropy(domain(Reverse.apply(f, 0.5)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
