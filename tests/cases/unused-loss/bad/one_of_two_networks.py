import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

g, d = mlp(4, 4), mlp(4, 1)
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for step in range(8):
    fake = g(torch.randn(8, 4))
    og.zero_grad()
    (-d(fake).mean()).backward()
    og.step()
    od.zero_grad()  # also cleared-grad
    d_loss = F.softplus(d(fake.detach())).mean() + F.softplus(-d(torch.randn(8, 4))).mean()  # <- unused-loss
    od.step()
    print(d_loss.item())
