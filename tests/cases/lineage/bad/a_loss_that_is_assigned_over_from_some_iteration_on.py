import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


net = mlp(4, 2)
opt = torch.optim.Adam(net.parameters())
for step in range(140):
    x = torch.randn(16, 4)
    out = net(x)
    loss = F.mse_loss(out, x[:, :2])  # <- unused-loss
    if step >= 12:
        loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
