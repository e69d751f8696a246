import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
losses = [m(torch.randn(4)) for _ in range(3)]
torch.stack(losses).backward()  # <- nonscalar-backward
