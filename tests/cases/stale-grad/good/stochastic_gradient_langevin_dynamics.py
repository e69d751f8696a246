import torch
from torch import nn

torch.manual_seed(0)

energy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(energy.parameters())
for _ in range(3):
    x = torch.randn(8, 2)
    for _ in range(3):
        x.requires_grad_(True)
        (g,) = torch.autograd.grad(energy(x).sum(), x)
        x = (x - 0.1 * g + 0.05 * torch.randn_like(x)).detach()
    loss = energy(torch.randn(8, 2)).mean() - energy(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
