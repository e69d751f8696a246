import torch
from torch import nn

torch.manual_seed(0)

class Pinn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        self.points = torch.rand(10, 1, requires_grad=True)
    def residual(self):
        u = self.net(self.points)
        slope, = torch.autograd.grad(u.sum(), self.points, create_graph=True)
        return (slope - u).pow(2).mean()

m = Pinn()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m.residual().backward()
    o.step()
