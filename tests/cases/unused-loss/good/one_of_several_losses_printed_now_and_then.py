import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

body, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*body.parameters(), *a.parameters()], 0.1)
for step in range(24):
    x = torch.randn(8, 4)
    h = body(x)
    losses = dict(first=F.mse_loss(a(h), x[:, :1]), second=F.l1_loss(b(h), x[:, 1:2]))
    opt.zero_grad()
    losses["first"].backward()
    opt.step()
    if step % 10 == 9:
        print(losses["second"].item())
