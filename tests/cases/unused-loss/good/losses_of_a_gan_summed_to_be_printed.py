import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

G, D = mlp(2, 4), mlp(4, 1)
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(8):
    real, fake = torch.randn(8, 4), G(torch.randn(8, 2))
    d_opt.zero_grad()
    err_real = bce(D(real), torch.ones(8, 1))
    err_real.backward()
    err_fake = bce(D(fake.detach()), torch.zeros(8, 1))
    err_fake.backward()
    err = err_real + err_fake
    d_opt.step()
    g_opt.zero_grad()
    g_err = bce(D(fake), torch.ones(8, 1))
    g_err.backward()
    g_opt.step()
    print(err.item(), g_err.item())
