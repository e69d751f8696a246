import torch
from torch import nn

torch.manual_seed(0)

trunk = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)
f = trunk(torch.randn(8, 3))
first, second, third = (head(f).pow(2).mean() for head in heads)
opt.zero_grad()
first.backward(retain_graph=True)
second.backward()  # <- freed-graph
third.backward()
opt.step()
