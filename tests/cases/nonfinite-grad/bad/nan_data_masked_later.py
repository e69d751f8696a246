import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
x = torch.randn(6, 4)
x[2, 1] = float("nan")
pred = m(x).squeeze(1)  # <- nonfinite-grad
loss = pred[~pred.isnan()].pow(2).mean()
loss.backward()
