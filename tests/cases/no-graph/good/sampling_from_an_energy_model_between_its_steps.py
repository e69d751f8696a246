import torch
from torch import nn

torch.manual_seed(0)

energy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(energy.parameters())
x = torch.randn(8, 2)
for _ in range(3):
    energy.requires_grad_(False)
    for _ in range(2):
        x = (x + 0.0 * energy(x)).detach().requires_grad_()
        energy(x).sum().backward()
        x = (x - 0.1 * x.grad).detach()
    energy.requires_grad_(True)
    opt.zero_grad()
    (energy(torch.randn(8, 2)).mean() - energy(x).mean()).backward()
    opt.step()
