import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

def per_sample(x):
    losses = model(x).pow(2).squeeze(1)
    grads = []
    for loss in losses:
        grads.append(torch.autograd.grad(loss, list(model.parameters()), retain_graph=True))
    return grads

for _ in range(3):
    per_sample(torch.randn(4, 3))
