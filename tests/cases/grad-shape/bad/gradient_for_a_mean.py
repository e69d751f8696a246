import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
out = m(torch.randn(6, 4)).mean()
out.backward(gradient=torch.ones(6, 3))  # <- grad-shape
