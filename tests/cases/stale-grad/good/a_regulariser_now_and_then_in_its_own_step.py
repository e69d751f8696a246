import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

D = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
for step in range(6):
    opt.zero_grad()
    F.softplus(-D(torch.randn(8, 3))).mean().backward()
    opt.step()
    if step % 2 == 0:
        real = torch.randn(8, 3, requires_grad=True)
        (g,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
        opt.zero_grad()
        (0.5 * g.pow(2).sum(1).mean()).backward()
        opt.step()
