import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(1, 8), nn.Hardtanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 1e-2)
def d(y, x):
    return torch.autograd.grad(outputs=y, inputs=x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]
def residual(x):
    w = net(x)  # <- zero-gradient
    return d(d(w, x), x) - torch.sin(x)
for _ in range(4):
    x = torch.linspace(0, 1, 20).view(-1, 1).requires_grad_()
    loss = residual(x).square().mean() + d(net(x), x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
