import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
p = F.softmax(m(torch.randn(5, 4)), 1)  # <- double-softmax
F.nll_loss(p, torch.randint(0, 3, (5,))).backward()
