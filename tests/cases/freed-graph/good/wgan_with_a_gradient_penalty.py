import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for step in range(4):
    real = torch.randn(8, 3)
    with torch.no_grad():
        fake = G(torch.randn(8, 2))
    eps = torch.rand(8, 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (g,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
    d_loss = D(fake).mean() - D(real).mean() + 10 * (g.norm(dim=1) - 1).pow(2).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    if step % 2:
        g_loss = -D(G(torch.randn(8, 2))).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
