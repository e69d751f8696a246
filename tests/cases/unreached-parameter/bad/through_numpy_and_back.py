import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec = mlp(4, 3), mlp(3, 4)
o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(6):
    x = torch.randn(8, 4)
    z = torch.from_numpy(enc(x).detach().numpy())  # <- unreached-parameter
    loss = F.mse_loss(dec(z), x)
    o.zero_grad()
    loss.backward()
    o.step()
