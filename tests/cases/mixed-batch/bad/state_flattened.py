import torch
from torch import nn

torch.manual_seed(0)

g = nn.LSTM(4, 8, 2, batch_first=True); fc = nn.Linear(16, 2); x = torch.randn(6, 5, 4)
_, (h, c) = g(x)
h = h.view(6, -1)  # <- mixed-batch
fc(h).sum().backward()
