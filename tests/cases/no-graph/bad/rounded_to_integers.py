import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
level = (model(torch.randn(8, 4)) * 255).long()  # <- no-graph
loss = (level - 128).abs().float().mean()
loss.backward()
