import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

ms = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
x = torch.randn(5, 4)
p = torch.stack([torch.sigmoid(m(x)) for m in ms]).mean(0)  # <- double-softmax
F.binary_cross_entropy_with_logits(p, torch.ones(5, 1)).backward()
