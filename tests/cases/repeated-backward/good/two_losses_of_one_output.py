import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
out = torch.tanh(model(torch.randn(8, 3)))
out.pow(2).mean().backward(retain_graph=True)
out.abs().mean().backward()
