import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(5, 4)
        self.sums = nn.Parameter(torch.randn(5, 4))
    def forward(self, z):
        index = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(index)
        if self.training:
            sums = torch.zeros(5, 4).index_add(0, index, z)
            self.sums = nn.Parameter(self.sums * 0.9 + 0.1 * sums)
            self.codes.weight = nn.Parameter(self.sums / 2)
        return F.mse_loss(q.detach(), z), z + (q - z).detach()

enc, vq, dec = nn.Linear(4, 4), Quantizer(), nn.Linear(4, 4)
m = nn.ModuleList([enc, vq, dec])
o = torch.optim.Adam(m.parameters())
for _ in range(8):
    x = torch.randn(8, 4)
    loss, q = vq(enc(x))
    loss = loss + F.mse_loss(dec(q), x)
    o.zero_grad()
    loss.backward()
    o.step()
