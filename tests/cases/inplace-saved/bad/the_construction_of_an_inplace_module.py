import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(
    nn.Linear(4, 4),
    nn.Sigmoid(),
    nn.LeakyReLU(0.1, inplace=True),  # <- inplace-saved
    nn.Linear(4, 2),
)
net(torch.randn(3, 4)).mean().backward()
