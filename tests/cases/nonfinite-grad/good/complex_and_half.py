import torch
from torch import nn

torch.manual_seed(0)

w = torch.randn(3, dtype=torch.complex64, requires_grad=True)
(w * w).abs().sum().backward()
h = nn.Linear(3, 3).to(torch.bfloat16)
h(torch.randn(2, 3, dtype=torch.bfloat16)).softmax(1).pow(2).sum().backward()
