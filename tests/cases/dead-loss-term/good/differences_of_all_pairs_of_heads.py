import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
opt = torch.optim.SGD(heads.parameters(), 0.05)
for _ in range(8):
    x = torch.randn(8, 4)
    outs = [h(x) for h in heads]
    spread = 0.0
    for i in range(3):
        for j in range(3):
            spread = spread + (heads[i].weight - heads[j].weight).pow(2).sum() + F.mse_loss(outs[i], outs[j])
    loss = sum(out.pow(2).mean() for out in outs) - 1e-3 * spread
    opt.zero_grad()
    loss.backward()
    opt.step()
