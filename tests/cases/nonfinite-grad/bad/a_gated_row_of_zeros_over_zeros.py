import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 4, bias=False)
x = torch.randn(5, 3)
x[1] = 0
h = net(x)
unit = h / h.abs().sum(1, keepdim=True)  # <- nonfinite-grad
loss = F.mse_loss(torch.nan_to_num(unit), torch.zeros(5, 4))
loss.backward()
