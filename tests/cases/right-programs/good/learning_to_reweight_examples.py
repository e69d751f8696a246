import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x, y, xv, yv = torch.randn(8, 4), torch.randn(8, 1), torch.randn(4, 4), torch.randn(4, 1)
    params = dict(model.named_parameters())
    eps = torch.zeros(8, requires_grad=True)
    cost = (functional_call(model, params, (x,)) - y).pow(2).squeeze(1)
    grads = torch.autograd.grad((eps * cost).sum(), list(params.values()), create_graph=True)
    fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}
    (g_eps,) = torch.autograd.grad(F.mse_loss(functional_call(model, fast, (xv,)), yv), eps)
    weights = (-g_eps).clamp(min=0)
    weights = weights / weights.sum().clamp(min=1e-8)
    opt.zero_grad()
    (weights.detach() * (model(x) - y).pow(2).squeeze(1)).sum().backward()
    opt.step()
