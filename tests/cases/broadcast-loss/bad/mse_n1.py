import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
F.mse_loss(m(torch.randn(6, 4)), torch.randn(6)).backward()  # <- broadcast-loss
