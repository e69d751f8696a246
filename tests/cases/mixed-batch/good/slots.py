import torch
from torch import nn

torch.manual_seed(0)

s = nn.Parameter(torch.randn(3, 4)); x = torch.randn(7, 4)
a = (s @ x.t()).softmax(0)
a = a / a.sum(1, keepdim=True)
(a @ x).mean().backward(retain_graph=True)
(a.unsqueeze(-1) * x.unsqueeze(0)).sum(1).mean().backward()
