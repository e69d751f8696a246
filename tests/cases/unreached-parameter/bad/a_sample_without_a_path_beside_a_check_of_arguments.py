import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec = mlp(4, 6), mlp(3, 4)
o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(6):
    x = torch.randn(8, 4)
    mean, scale = enc(x).chunk(2, 1)
    dist = torch.distributions.Normal(mean, F.softplus(scale) + 0.01)
    z = dist.sample()  # <- unreached-parameter
    loss = F.mse_loss(dec(z), x)
    o.zero_grad()
    loss.backward()
    o.step()
