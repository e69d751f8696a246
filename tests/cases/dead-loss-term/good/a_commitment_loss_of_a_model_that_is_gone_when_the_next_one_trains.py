import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(5, 2)
    def forward(self, z):
        q = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
        return F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z), z + (q - z).detach()

for vq in (Quantizer(), Quantizer()):
    enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
    model = nn.ModuleList([enc, vq, dec])
    opt = torch.optim.Adam(model.parameters())
    for _ in range(7):
        x = torch.randn(8, 4)
        commitment, q = vq(enc(x))
        loss = commitment + F.mse_loss(dec(q), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
