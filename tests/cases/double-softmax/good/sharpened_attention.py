import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
a = (m(x) @ x.transpose(1, 2)).softmax(-1)
((a / 0.1).softmax(-1) @ x).sum().backward()
