import torch
from torch import nn

torch.manual_seed(0)

e = nn.Embedding(9, 4); g = nn.GRU(4, 8); t = torch.randint(0, 9, (5, 7))
x = e(t).view(7, 5, -1)  # <- mixed-batch
g(x)[0][-1].sum().backward()
