import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(8, 4)
    pred = net(x)
    rough = pred.diff(dim=0).pow(2).mean().item()  # <- dead-loss-term
    loss = F.mse_loss(pred, x[:, :1]) + rough
    opt.zero_grad()
    loss.backward()
    opt.step()
