import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3); gate = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.zeros(5, dtype=torch.long)
F.cross_entropy(torch.stack([m(x), gate(x)]).mean(0), y).backward()
F.cross_entropy(torch.cat([m(x), gate(x).sigmoid()], 1), y).backward()
