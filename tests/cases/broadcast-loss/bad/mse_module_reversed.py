import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1); crit = nn.MSELoss()
y = torch.randn(6, 1)
loss = crit(m(torch.randn(6, 4)).squeeze(), y)  # <- broadcast-loss
loss.backward()
