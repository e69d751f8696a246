import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.randn(6))
x = F.relu(w)
y = torch.where(x > 0, torch.log(torch.where(x > 0, x, torch.ones(()))), torch.zeros(()))
y.sum().backward()
