import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
p = F.log_softmax(m(torch.randn(5, 4)), dim=1)  # also note: double-softmax
F.cross_entropy(p, torch.randint(0, 3, (5,))).backward()
