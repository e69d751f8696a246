import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
x = torch.randn(8, 3, requires_grad=True)
loss = torch.tanh(model(x)).mean()
(g,) = torch.autograd.grad(loss, x, retain_graph=True)
loss.backward()
