import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = list(model.parameters())
loss = model(torch.randn(8, 3)).pow(2).mean()
grads = torch.autograd.grad(loss, params, create_graph=True)
v = [torch.randn_like(p) for p in params]
for _ in range(3):
    dot = sum((g * w).sum() for g, w in zip(grads, v))
    v = torch.autograd.grad(dot, params)  # <- freed-graph
