import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt = torch.optim.Adam(critic.parameters(), 1e-3)
for _ in range(5):
    x = torch.randn(16, 2, requires_grad=True)
    slope = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]
    loss = critic(x).mean() + (slope.norm(dim=1) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
outer = torch.optim.Adam(net.parameters(), 1e-3)
names = [name for name, _ in net.named_parameters()]
for _ in range(5):
    x, y = torch.randn(16, 2), torch.randn(16, 1)
    fast = dict(net.named_parameters())
    for _ in range(2):
        inner = F.mse_loss(torch.func.functional_call(net, fast, x), y)
        grads = torch.autograd.grad(inner, [fast[n] for n in names], create_graph=True)
        fast = {n: fast[n] - 0.1 * g for n, g in zip(names, grads)}
    loss = F.mse_loss(torch.func.functional_call(net, fast, x), y)
    outer.zero_grad()
    loss.backward()
    outer.step()
