import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp(4, 3)
opt = torch.optim.Adam(net.parameters())
for _ in range(8):
    x = torch.randn(8, 4)
    losses = []
    for k in range(3):
        loss = F.mse_loss(net(x)[:, k], x[:, k])
        losses.append(loss)
    loss = torch.stack(losses).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
