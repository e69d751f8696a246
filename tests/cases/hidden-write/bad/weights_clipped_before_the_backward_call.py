import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

def clip():
    for p in net.parameters():
        p.data.clamp_(-0.01, 0.01)  # <- hidden-write

loss = net(torch.randn(4, 3)).pow(2).mean()
clip()
loss.backward()
