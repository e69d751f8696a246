import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
F.mse_loss(m(torch.randn(1, 4)), torch.randn(1)).backward()
((m(torch.randn(1, 4)) - torch.randn(1)) ** 2).mean().backward()
