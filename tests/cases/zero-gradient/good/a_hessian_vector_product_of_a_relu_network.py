import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
weights = list(net.parameters())
for _ in range(5):
    x, y = torch.randn(16, 2), torch.randn(16, 1)
    loss = F.mse_loss(net(x), y)
    grads = torch.autograd.grad(loss, weights, create_graph=True)
    dot = sum((g * torch.randn_like(g)).sum() for g in grads)
    hv = torch.autograd.grad(dot, weights, create_graph=True)
    total = loss + 1e-3 * sum(h.square().sum() for h in hv)
    opt.zero_grad()
    total.backward()
    opt.step()
