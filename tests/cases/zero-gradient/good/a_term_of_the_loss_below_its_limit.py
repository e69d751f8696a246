import torch
from torch import nn

torch.manual_seed(0)

body, prior = nn.Linear(4, 3), nn.Linear(2, 3)
opt = torch.optim.SGD([*body.parameters(), *prior.parameters()], lr=0.01)
for _ in range(10):
    x, c = torch.randn(8, 4), torch.randn(8, 2)
    h = body(x)
    apart = (h - prior(c)).pow(2).sum(1)
    loss = h.pow(2).mean() + 0.1 * torch.clamp(apart.mean(), min=100.0)  # also note: zero-gradient
    opt.zero_grad()
    loss.backward()
    opt.step()
