import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())

def losses(real):
    fake = torch.tanh(G(torch.randn(8, 2)))
    g_loss = F.softplus(-D(fake)).mean()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()  # <- freed-graph
    return g_loss, d_loss

for _ in range(2):
    g_loss, d_loss = losses(torch.randn(8, 3))
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
