import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp()
opt = torch.optim.SGD(net.parameters(), 0.1)
xv = torch.randn(8, 4)
for _ in range(8):
    x = torch.randn(8, 4)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    val_loss = F.mse_loss(net(xv), xv[:, :1])
    print(loss.item(), val_loss.item())
