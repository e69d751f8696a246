import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
p = F.softmax(m(torch.randn(5, 4)), dim=1)  # <- double-softmax
logs = F.log_softmax(p, dim=1)
(-logs.gather(1, torch.zeros(5, 1, dtype=torch.long))).mean().backward()
