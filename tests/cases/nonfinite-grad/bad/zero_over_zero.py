import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
a = F.relu(m(torch.randn(6, 4))) * torch.tensor([[1.], [0.], [1.], [1.], [1.], [1.]])
n = a / a.sum(1, keepdim=True)  # <- nonfinite-grad
n = torch.where(torch.isnan(n), torch.zeros_like(n), n)
loss = n.pow(2).sum()
loss.backward()
