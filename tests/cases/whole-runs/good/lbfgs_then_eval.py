import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 1))
adam = torch.optim.Adam(m.parameters(), 1e-3)
lb = torch.optim.LBFGS(m.parameters(), max_iter=5)


def closure():
    lb.zero_grad()
    x = torch.rand(32, 2, requires_grad=True)
    u = m(x)
    g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    l = (g.sum(1) - u[:, 0]).pow(2).mean()
    l.backward()
    return l


for _ in range(5):
    adam.zero_grad()
    l = m(torch.rand(8, 2)).pow(2).mean()
    l.backward()
    adam.step()
for _ in range(4):
    lb.step(closure)
