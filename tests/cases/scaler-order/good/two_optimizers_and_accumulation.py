import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 4), nn.Linear(4, 1)
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for i in range(8):
    z, real = torch.randn(8, 2), torch.randn(8, 4)
    d_loss = (D(G(z).detach()) - D(real)).mean() + D(real).pow(2).mean()
    scaler.scale(d_loss / 2).backward()
    if i % 2:
        scaler.unscale_(d_opt)
        nn.utils.clip_grad_norm_(D.parameters(), 1.0)
        scaler.step(d_opt)
        g_loss = -D(G(z)).mean()
        g_opt.zero_grad()
        scaler.scale(g_loss).backward()
        scaler.unscale_(g_opt)
        scaler.step(g_opt)
        scaler.update()
        d_opt.zero_grad()
