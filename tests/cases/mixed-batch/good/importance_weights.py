import torch
from torch import nn

torch.manual_seed(0)

w = nn.Linear(4, 1)(torch.randn(5, 7, 4)).squeeze(-1)
(w.softmax(0).detach() * w).sum(0).mean().backward()
(w.detach() + nn.Parameter(torch.zeros(5, 7))).softmax(0).mul(torch.randn(5, 7)).sum(0).mean().backward()
