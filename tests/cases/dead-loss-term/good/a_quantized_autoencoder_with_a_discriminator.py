import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

enc, book, dec, D = mlp(4, 3), nn.Embedding(6, 3), mlp(3, 4), mlp(4, 1)
opt = torch.optim.Adam([*enc.parameters(), *book.parameters(), *dec.parameters()])
d_opt = torch.optim.Adam(D.parameters())
for _ in range(8):
    x = torch.randn(8, 4)
    z = enc(x)
    q = book(torch.cdist(z, book.weight).argmin(1))
    extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    recon = dec(z + (q - z).detach())
    nll = F.mse_loss(recon, x)
    g_loss = -D(recon).mean()
    (a,) = torch.autograd.grad(nll, dec[2].weight, retain_graph=True)
    (b,) = torch.autograd.grad(g_loss, dec[2].weight, retain_graph=True)
    weight = (a.norm() / (b.norm() + 1e-4)).clamp(0, 1e4).detach()
    loss = nll + weight * g_loss + extra
    opt.zero_grad()
    loss.backward()
    opt.step()
    d_loss = F.relu(1 - D(x)).mean() + F.relu(1 + D(recon.detach())).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
