import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 7)
th = m(torch.randn(6, 4))
tg = torch.randn(6, 7)
F.smooth_l1_loss(th.unsqueeze(-1).expand(6, 7, 7), tg.unsqueeze(1).expand(6, 7, 7), reduction="none").mean().backward()
