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
    pred = net(x)
    q_loss = F.mse_loss(pred[:, 0], x[:, 0])
    q_loss = torch.tensor(q_loss.item(), requires_grad=True)  # <- dead-loss-term
    loss = F.mse_loss(pred[:, 1], x[:, 1]) + q_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
