import torch
from torch import nn

torch.manual_seed(0)

def freeze(net):
    net.requires_grad_(False)  # <- no-graph

model = nn.Linear(4, 1)
freeze(model)
model(torch.randn(8, 4)).pow(2).mean().backward()
