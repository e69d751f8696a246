import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
try:
    raise RuntimeError("Mismatch in shape: grad_output[0]")
except RuntimeError:
    m(torch.randn(2, 4)).sum().backward()
