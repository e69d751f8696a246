import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
a = (m(x) @ x.transpose(1, 2)).softmax(-1)
F.cross_entropy((a @ x).mean(1), torch.zeros(2, dtype=torch.long)).backward()
