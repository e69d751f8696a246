import copy

import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

def fit(model):
    opt = torch.optim.Adam(model.parameters())
    for _ in range(10):
        opt.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        opt.step()

source = mlp()
fit(source)
target = copy.deepcopy(source)
target[0].requires_grad = False  # <- misspelt-attribute
fit(target)
