import torch
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.tensor([0., 0.5]))
l = w.abs().sqrt().sum()  # <- nonfinite-grad
l.backward(retain_graph=True)
w.grad = None
(l * 2).backward()
