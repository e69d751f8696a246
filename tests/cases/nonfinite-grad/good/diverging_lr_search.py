import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 1)
opt = torch.optim.SGD(m.parameters(), 1e-3)
for i in range(40):
    for g in opt.param_groups: g["lr"] *= 3
    loss = F.mse_loss(m(torch.randn(8, 3)), torch.randn(8, 1))
    opt.zero_grad(); loss.backward(); opt.step()
    if not torch.isfinite(loss): break
