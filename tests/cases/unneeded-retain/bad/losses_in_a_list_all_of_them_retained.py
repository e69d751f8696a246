import torch
from torch import nn

torch.manual_seed(0)

trunk = nn.Linear(3, 4)
heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)
for _ in range(4):
    f = torch.tanh(trunk(torch.randn(8, 3)))
    opt.zero_grad()
    for head in heads:
        head(f).pow(2).mean().backward(retain_graph=True)  # <- note: unneeded-retain
    opt.step()
