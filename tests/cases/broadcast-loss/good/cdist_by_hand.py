import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
z = m(torch.randn(6, 4))
g = torch.linspace(0, 1, 6)
k = torch.exp(-(z - g) ** 2)
(k.sum(1).log()).mean().backward()
