import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
out = model(torch.randn(8, 4))
loss = (out.data - 1).pow(2).mean()  # <- no-graph
loss.backward()
