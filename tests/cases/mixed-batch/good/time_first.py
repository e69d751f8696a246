import torch
from torch import nn

torch.manual_seed(0)

enc = nn.Linear(4, 4); c = torch.randn(5, 6, 4)
s = enc(c).sum(-1)
w = s.softmax(0)
torch.bmm(w.t().unsqueeze(1), c.transpose(0, 1)).mean().backward()
