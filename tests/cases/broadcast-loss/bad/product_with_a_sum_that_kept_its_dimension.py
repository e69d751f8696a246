import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 2)
logp = -(m(torch.randn(6, 4)) ** 2).sum(-1, keepdim=True)
loss = -(logp * torch.randn(6)).mean()  # <- broadcast-loss
loss.backward()
