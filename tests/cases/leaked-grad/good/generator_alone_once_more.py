import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))

model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())

enc, dec = net(3, 4, 2), net(2, 4, 3)
e_opt, g_opt = torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())
for x, y in data:
    e_opt.zero_grad(); g_opt.zero_grad()
    F.mse_loss(dec(enc(x)), x).backward()
    enc.requires_grad_(False)
    z = torch.randn(5, 2)
    F.mse_loss(enc(dec(z)), z).backward()
    enc.requires_grad_(True)
    e_opt.step(); g_opt.step()
