import torch
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


G, D = mlp(2, 4), mlp(4, 1)
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for step in range(10):
    real = torch.randn(16, 4)
    with torch.no_grad():
        fake = G(torch.randn(16, 2))
    mixed = (torch.rand(16, 1) * (real - fake) + fake).requires_grad_(True)
    (g,) = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
    loss_d = D(fake).mean() - D(real).mean() + 10 * (g.norm(2, 1) - 1).pow(2).mean()
    d_opt.zero_grad()
    loss_d.backward()
    d_opt.step()
    if step % 3 == 0:
        loss_g = -D(G(torch.randn(16, 2))).mean()
        g_opt.zero_grad()
        loss_g.backward()
        g_opt.step()
