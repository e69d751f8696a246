import torch
from torch import nn

torch.manual_seed(0)

g, s = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 1)
h, _ = g(torch.randn(5, 7, 4))
w = torch.softmax(s(h), dim=0)  # <- mixed-batch
(w * h).sum(dim=1).pow(2).mean().backward()
