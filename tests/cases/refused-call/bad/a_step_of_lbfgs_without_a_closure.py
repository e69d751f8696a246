import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.LBFGS(net.parameters())
opt.zero_grad()
net(torch.randn(8, 4)).pow(2).mean().backward()
opt.step()  # <- refused-call
