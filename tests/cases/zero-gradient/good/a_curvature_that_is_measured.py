import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(5):
    x = torch.randn(16, 2, requires_grad=True)
    slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    loss = (slope - 1).square().mean()
    bend = torch.autograd.grad(slope[:, 0].sum(), x, retain_graph=True)[0]
    print(bend.abs().max().item())
    opt.zero_grad()
    loss.backward()
    opt.step()
