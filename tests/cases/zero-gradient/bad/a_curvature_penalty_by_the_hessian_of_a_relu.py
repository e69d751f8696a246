import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(4):
    x, y = torch.randn(3), torch.randn(1)
    out = net(x)
    h = torch.autograd.functional.hessian(lambda v: net(v).sum(), x, create_graph=True)  # <- zero-gradient
    loss = (out - y).pow(2).mean() + 0.1 * h.pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
