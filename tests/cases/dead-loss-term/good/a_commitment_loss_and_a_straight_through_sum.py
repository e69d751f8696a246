import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

enc, book, dec = mlp(4, 3), nn.Embedding(6, 3), mlp(3, 4)
opt = torch.optim.Adam([*enc.parameters(), *book.parameters(), *dec.parameters()])
for _ in range(8):
    x = torch.randn(8, 4)
    z = enc(x)
    q = book(torch.cdist(z, book.weight).argmin(1))
    extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    loss = F.mse_loss(dec(z + (q - z).detach()), x) + extra
    opt.zero_grad()
    loss.backward()
    opt.step()
