import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

body, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)

def losses_of(x):
    h = body(x)
    return dict(first=F.mse_loss(a(h), x[:, :1]), second=F.l1_loss(b(h), x[:, 1:2]))

opt = torch.optim.SGD([*body.parameters(), *a.parameters()], 0.1)
for _ in range(8):
    losses = losses_of(torch.randn(8, 4))
    opt.zero_grad()
    losses["first"].backward()
    opt.step()
opt = torch.optim.SGD([*body.parameters(), *a.parameters(), *b.parameters()], 0.1)
for _ in range(8):
    losses = losses_of(torch.randn(8, 4))
    opt.zero_grad()
    sum(losses.values()).backward()
    opt.step()
