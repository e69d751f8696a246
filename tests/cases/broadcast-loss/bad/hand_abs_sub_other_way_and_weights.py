import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
y = torch.randn(6)
loss = 0.5 * torch.abs(y - m(torch.randn(6, 4))).mean() + 1  # <- broadcast-loss
loss.backward()
