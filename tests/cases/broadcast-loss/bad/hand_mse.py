import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
y = torch.randn(6)
loss = ((m(torch.randn(6, 4)) - y) ** 2).mean()  # <- broadcast-loss
loss.backward()
