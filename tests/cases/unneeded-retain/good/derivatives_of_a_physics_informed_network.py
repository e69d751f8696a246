import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    xt = torch.rand(16, 2, requires_grad=True)
    u = net(xt)
    du = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True, retain_graph=True)[0]
    uxx = torch.autograd.grad(du[:, 0], xt, torch.ones(16), create_graph=True)[0][:, 0]
    opt.zero_grad()
    (du[:, 1] - 0.1 * uxx).pow(2).mean().backward()
    opt.step()
