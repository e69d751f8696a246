import torch
from torch import nn

torch.manual_seed(0)

u = nn.Parameter(torch.tensor([1., 0.]))
v = torch.tensor([1., 0.])
ang = torch.acos((u * v).sum())  # <- nonfinite-grad
loss = ang ** 2
loss.backward()
