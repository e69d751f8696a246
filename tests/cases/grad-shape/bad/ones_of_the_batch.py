import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
out = m(torch.randn(6, 4))
out.backward(torch.ones(6))  # <- grad-shape
