import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(4, 3)
array = x.numpy()
loss = nn.Linear(3, 1)(x).pow(2).mean()
array[:] = 0  # <- hidden-write
loss.backward()
