import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.randn(6, 3), torch.randn(6, 1)
losses = (model(x) - y).pow(2).squeeze(1)
norms = []
for loss in losses:
    model.zero_grad()
    loss.backward()  # <- freed-graph
    norms.append(sum(p.grad.norm() for p in model.parameters()))
