import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

q, k, v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
opt = torch.optim.Adam([*q.parameters(), *k.parameters(), *v.parameters()])
for _ in range(8):
    x, context = torch.randn(4, 3, 8), torch.randn(4, 1, 8)
    weights = F.dropout((q(x) @ k(context).transpose(1, 2) / 8**0.5).softmax(-1), 0.1)  # also note: zero-gradient
    opt.zero_grad()
    (weights @ v(context)).pow(2).mean().backward()
    opt.step()
