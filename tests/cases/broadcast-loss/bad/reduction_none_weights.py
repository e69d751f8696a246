import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
w = torch.rand(6)
l = F.mse_loss(m(torch.randn(6, 4)), torch.randn(6), reduction="none")  # <- broadcast-loss
(l * w).mean().backward()
