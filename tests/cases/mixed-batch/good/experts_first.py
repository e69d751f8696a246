import torch
from torch import nn

torch.manual_seed(0)

g = nn.Linear(4, 3); x = torch.randn(7, 4); e = torch.randn(3, 7, 5)
w = g(x).t().softmax(0)
(w.unsqueeze(-1) * e).sum(0).mean().backward()
