import torch
from torch import nn

torch.manual_seed(0)

value = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
value.zero_grad()
for t in range(6):
    s = torch.randn(3)
    v = value(s)
    error = float(s.sum()) - v.item()
    v.backward()
    with torch.no_grad():
        for p in value.parameters():
            p.add_(0.01 * error * p.grad)
            p.grad.mul_(0.9 * 0.8)
