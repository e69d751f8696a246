import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
trained = (p for p in net.parameters() if p.requires_grad)
print(sum(p.numel() for p in trained))
opt = torch.optim.SGD(trained, 0.1)  # <- refused-call
