import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 3, bias=False)
h = F.relu(m(torch.zeros(2, 3)))
h.register_hook(lambda g: g.nan_to_num(0, 0, 0))
h.sqrt().sum().backward()
