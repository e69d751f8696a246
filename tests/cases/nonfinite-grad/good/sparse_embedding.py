import torch
from torch import nn

torch.manual_seed(0)

e = nn.Embedding(10, 3, sparse=True)
e(torch.tensor([1, 2])).sum().backward()
