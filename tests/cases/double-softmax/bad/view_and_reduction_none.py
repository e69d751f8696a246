import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 6)
p = m(torch.randn(5, 4)).view(5, 2, 3).softmax(-1).view(-1, 3)  # <- double-softmax
w = torch.rand(10)
(F.cross_entropy(p, torch.randint(0, 3, (10,)), reduction="none") * w).mean().backward()
