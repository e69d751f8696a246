import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
y = torch.zeros(5, dtype=torch.long)
s = m(torch.randn(5, 4))
F.cross_entropy(s * torch.sigmoid(s), y).backward()
s = m(torch.randn(5, 4))
F.cross_entropy(torch.sigmoid(s) * 10, y).backward()
