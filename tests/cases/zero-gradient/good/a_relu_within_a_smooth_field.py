import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
rough = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD([*net.parameters(), *rough.parameters()], 1e-2)
for _ in range(5):
    x = torch.rand(20, 1, requires_grad=True)
    loss = 0.0
    for u in (net(x), rough(x) ** 2, rough(x) * torch.sin(x)):
        ux = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        loss = loss + (uxx - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
