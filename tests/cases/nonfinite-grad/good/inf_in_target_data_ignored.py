import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 1)
y = torch.randn(5, 1); y[1] = float("nan")
ok = ~y.isnan()
loss = (m(torch.randn(5, 3))[ok] - y[ok]).pow(2).mean()
loss.backward()
