import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 4)
s = m(torch.randn(5, 3)); mask = torch.rand(5, 4) > 0.3; mask[:, 0] = True
s = s.masked_fill(~mask, float("-inf"))
loss = (torch.logsumexp(s, 1) - s[:, 0]).mean() + F.cross_entropy(s, torch.zeros(5, dtype=torch.long))
loss.backward()
