import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec = mlp(4, 3), mlp(3, 4)
o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])

def code(x):
    z = enc(x)
    print((z > 0).float().mean().item(), z.argmax(1).tolist())
    return z.data  # <- unreached-parameter

for _ in range(6):
    x = torch.randn(8, 4)
    z = F.normalize(code(x), dim=1).clone()
    z = torch.cat([z[:4] * 2, z[4:] / 2])
    loss = F.mse_loss(dec(z), x)
    o.zero_grad()
    loss.backward()
    o.step()
