import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())  # <- double-softmax
p = m(torch.randn(5, 4))
F.binary_cross_entropy(torch.sigmoid(p), torch.ones(5, 1)).backward()
