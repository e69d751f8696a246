import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
p = torch.sigmoid(m(torch.randn(5, 4))).squeeze(1)  # <- double-softmax
F.binary_cross_entropy_with_logits(p, torch.ones(5)).backward()
