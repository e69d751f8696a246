import torch
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.tensor([-1., 0.5]))
loss = torch.where(w > -1, torch.log1p(w), w).sum()  # <- nonfinite-grad
loss.backward()
