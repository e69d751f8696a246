import torch
from torch import nn

torch.manual_seed(0)

lin = nn.Linear(4, 4); c = torch.randn(6, 5, 4)
s = torch.bmm(lin(c), c.transpose(1, 2))
w = nn.Softmax(dim=0)(s)  # <- mixed-batch
torch.bmm(w, c).pow(2).mean().backward()
