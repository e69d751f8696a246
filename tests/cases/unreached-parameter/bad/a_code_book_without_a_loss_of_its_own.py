import torch
from torch import nn

torch.manual_seed(0)

class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.book, self.enc, self.dec = nn.Embedding(6, 3), nn.Linear(4, 3), nn.Linear(3, 4)
    def forward(self, x):
        z = self.enc(x)
        q = self.book(torch.cdist(z, self.book.weight).argmin(1))
        return self.dec(z + (q - z).detach())  # <- unreached-parameter

m = Codes()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
