import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 4))
    g_loss = -D(fake).mean()
    d_loss = D(fake.detach()).mean() - D(torch.randn(8, 4)).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()  # <- inplace-saved
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
