import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
m(torch.randn(4)).backward()
m(torch.randn(1, 4)).backward()
