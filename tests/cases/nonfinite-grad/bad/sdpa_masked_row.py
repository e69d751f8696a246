import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 4)
q = m(torch.randn(2, 3, 4))
mask = torch.zeros(2, 3, 3); mask[0, 0] = float("-inf")
o = torch.softmax(q @ q.transpose(1, 2) + mask, -1) @ q  # <- nonfinite-grad
loss = o.nan_to_num().sum()
loss.backward()
