import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = nn.Embedding(6, 3)
    def forward(self, z):
        q = self.book(torch.cdist(z, self.book.weight).argmin(1))
        q = z + (q - z).detach()  # <- unreached-parameter
        return q, F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

enc, codes, dec = mlp(4, 3), Codes(), mlp(3, 4)
o = torch.optim.Adam([*enc.parameters(), *codes.parameters(), *dec.parameters()])
for _ in range(6):
    x = torch.randn(8, 4)
    q, extra = codes(enc(x))
    loss = F.mse_loss(dec(q), x) + extra
    o.zero_grad()
    loss.backward()
    o.step()
