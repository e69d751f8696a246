import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

D = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
for _ in range(2):
    real = torch.randn(8, 3, requires_grad=True)
    score = D(real)
    (g,) = torch.autograd.grad(score.sum(), real)  # <- freed-graph
    loss = F.softplus(-score).mean() + g.pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
