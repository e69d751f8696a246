import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


nets = [mlp(4, 1) for _ in range(3)]
x = torch.randn(32, 4)
losses = [F.mse_loss(net(x), x[:, :1]) for net in nets]
loss = torch.stack([torch.tensor(one) for one in losses]).mean()  # <- no-graph
loss.backward()
