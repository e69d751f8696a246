import torch
from torch import nn

torch.manual_seed(0)

D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
for _ in range(5):
    x = torch.randn(4, 3, requires_grad=True)
    g, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    loss = D(x).mean() + ((g.norm(2, 1) - 1) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
