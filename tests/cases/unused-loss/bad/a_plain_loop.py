import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp()
opt = torch.optim.Adam(net.parameters())
for step in range(6):
    x = torch.randn(8, 4)
    loss = F.mse_loss(net(x), x[:, :1])  # <- unused-loss
    opt.zero_grad()
    opt.step()
    print(loss.item())
