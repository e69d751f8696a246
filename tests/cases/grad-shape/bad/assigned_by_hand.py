import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
m(torch.randn(2, 4)).sum().backward()
m.weight.grad = m.weight.grad.t()  # <- grad-shape
