import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(8, 4)
    losses = torch.stack([F.mse_loss(net(x)[:, k], x[:, k]) for k in range(2)])
    weights = F.softmax(losses.detach(), 0)
    loss = (weights * losses).sum() + losses[0] / losses[0].item()
    opt.zero_grad()
    loss.backward()
    opt.step()
