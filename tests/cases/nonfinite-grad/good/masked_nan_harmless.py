import torch
from torch import nn

torch.manual_seed(0)

emb = nn.Linear(4, 4)
x = emb(torch.randn(3, 4))
s = x.masked_fill(torch.tensor([[True]*4, [False]*4, [False]*4]), float("-inf"))
a = s.softmax(1)
out = torch.where(torch.tensor([[False],[True],[True]]), a, torch.zeros(()))
out.sum().backward()
