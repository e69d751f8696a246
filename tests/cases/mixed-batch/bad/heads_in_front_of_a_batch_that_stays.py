import torch
from torch import nn

torch.manual_seed(0)

qkv, out = nn.Linear(8, 8), nn.Linear(8, 1)
x = torch.randn(6, 5, 8)
q = qkv(x).reshape(2, 6, 5, 4)  # <- mixed-batch
y = (q @ q.transpose(-1, -2)).softmax(-1) @ q
out(y.reshape(6, 5, 8)).mean().backward()
