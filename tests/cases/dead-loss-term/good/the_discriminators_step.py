import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

G, D = mlp(2, 4), mlp(4, 1)
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(8):
    real, fake = torch.randn(8, 4), G(torch.randn(8, 2))
    d_loss = bce(D(real), torch.ones(8, 1)) + bce(D(fake.detach()), torch.zeros(8, 1))
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = bce(D(fake), torch.ones(8, 1)) + F.l1_loss(fake, real)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
