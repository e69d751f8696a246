import torch
from torch import nn

torch.manual_seed(0)

def d(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
for act in (nn.Tanh(), nn.SiLU(), nn.Softplus(), nn.ELU()):
    net = nn.Sequential(nn.Linear(1, 8), act, nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), 1e-2)
    for _ in range(4):
        x = torch.rand(20, 1, requires_grad=True)
        loss = (d(d(net(x), x), x) - x).square().mean() + net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
