import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

tokens = torch.randint(5, (3,))
tokens.requires_grad_(True)  # <- refused-call
net(F.one_hot(tokens, 4).float()).sum().backward()
