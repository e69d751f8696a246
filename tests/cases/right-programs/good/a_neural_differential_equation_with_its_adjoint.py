import torch
from torch import nn

torch.manual_seed(0)

class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, field, steps, *params):
        ctx.field, ctx.steps = field, steps
        with torch.no_grad():
            for _ in range(steps):
                z = z + field(z) / steps
        ctx.save_for_backward(z, *params)
        return z

    @staticmethod
    def backward(ctx, a):
        z, *params = ctx.saved_tensors
        total = [torch.zeros_like(p) for p in params]
        for _ in range(ctx.steps):
            with torch.enable_grad():
                z = z.detach().requires_grad_(True)
                f = ctx.field(z)
                gz, *gp = torch.autograd.grad(f, (z, *params), a)
            z = z - f / ctx.steps
            a = a + gz / ctx.steps
            total = [t + g / ctx.steps for t, g in zip(total, gp)]
        return (a, None, None, *total)

field, head = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Linear(2, 1)
opt = torch.optim.Adam([*field.parameters(), *head.parameters()])
for _ in range(3):
    z = Adjoint.apply(torch.randn(6, 2), field, 4, *field.parameters())
    opt.zero_grad()
    head(z).pow(2).mean().backward()
    opt.step()
