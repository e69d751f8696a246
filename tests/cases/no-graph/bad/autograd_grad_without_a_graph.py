import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
x = torch.randn(8, 4, requires_grad=True)
out = model(x.detach()).detach()  # <- no-graph
torch.autograd.grad(out.sum(), x)
