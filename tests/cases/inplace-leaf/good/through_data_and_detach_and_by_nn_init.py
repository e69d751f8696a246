import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 3)
nn.init.zeros_(model.bias)
model.weight.data.mul_(0.5)
model.bias.detach().add_(1)
model(torch.randn(2, 3)).mean().backward()
