import torch
from torch import nn

torch.manual_seed(0)

enc = nn.Linear(4, 4); c = torch.randn(5, 6, 4)
w = enc(c).sum(-1, keepdim=True).softmax(0)
(w * c).sum(0).mean().backward()
