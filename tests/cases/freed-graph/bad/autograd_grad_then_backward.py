import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(8, 4, requires_grad=True)
loss = model(x).pow(2).mean()
g = torch.autograd.grad(loss, x)[0]  # <- freed-graph
print(g.norm())
loss.backward()
