import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 2, bias=False)
x = torch.randn(8, 3)
x[4] = 0
loss = (net(x).abs() ** 0.5).mean()  # <- nonfinite-grad
loss.backward()
