import torch
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.randn(6, 1)); t = torch.arange(6.)
emb = torch.sin(t * w)
emb.mm(torch.randn(6, 2)).mean().backward()
