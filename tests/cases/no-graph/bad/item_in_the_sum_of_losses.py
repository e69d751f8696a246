import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
total = 0.0
for x in torch.randn(3, 8, 4):
    total += model(x).pow(2).mean().item()  # <- no-graph
loss = torch.tensor(total)
loss.backward()
