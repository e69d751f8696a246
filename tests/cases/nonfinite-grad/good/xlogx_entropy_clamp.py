import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 4)
p = m(torch.randn(5, 3)).softmax(1)
h = -(p * p.clamp(min=1e-9).log()).sum(1).mean()
h.backward()
