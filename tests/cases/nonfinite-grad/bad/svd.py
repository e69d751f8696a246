import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4, bias=False)
x = torch.zeros(4, 4)
u, s, v = torch.linalg.svd(m(x) + torch.eye(4))  # <- nonfinite-grad
loss = (u @ torch.diag(s.sqrt())).pow(3).sum()
loss.backward()
