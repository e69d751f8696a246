import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 3)
s = m(torch.randn(4, 3))
F.multilabel_soft_margin_loss(s, torch.ones(4, 3)).backward()
