import torch
from torch import nn

torch.manual_seed(0)

def body(width):
    layers = []
    for _ in range(2):
        layers += [nn.Linear(width, width), nn.Tanh(), nn.Hardtanh(inplace=True)]
    return nn.Sequential(*layers)

net = body(4)
y = net(torch.randn(3, 4))  # <- inplace-saved
y.sum().backward()
