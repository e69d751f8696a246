import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

lin = nn.Linear(4, 1); c = torch.randn(6, 5, 4)
w = F.softmax(lin(c).squeeze(-1), dim=0)  # <- mixed-batch
(w.unsqueeze(-1) * c).sum(1).pow(2).mean().backward()
