import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 1)
for i in range(4):
    loss = m(torch.randn(2, 3)).mean() * (float("nan") if i == 1 else 1)
    if not torch.isfinite(loss): continue
    loss.backward()
