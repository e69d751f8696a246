import torch
from torch import nn

torch.manual_seed(0)

trunk, heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
params = [*trunk.parameters(), *heads.parameters()]
opt = torch.optim.SGD(params, lr=0.1)
for _ in range(4):
    f = torch.tanh(trunk(torch.randn(8, 3)))
    losses = [head(f).pow(2).mean() for head in heads]  # also note: unreached-parameter
    opt.zero_grad()
    for loss in losses[:2]:
        loss.backward(retain_graph=True)  # <- note: unneeded-retain
    opt.step()
