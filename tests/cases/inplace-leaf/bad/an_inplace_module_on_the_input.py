import torch
from torch import nn

torch.manual_seed(0)

x = torch.zeros(4, requires_grad=True)
act = nn.ReLU(inplace=True)
y = act(x)  # <- inplace-leaf
