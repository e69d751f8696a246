import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
d = m(torch.randn(6, 4)) - torch.randn(6)  # <- broadcast-loss
(d + F.softplus(-2 * d)).mean().backward()
