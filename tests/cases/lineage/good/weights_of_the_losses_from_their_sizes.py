import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


net = mlp(4, 2)
opt = torch.optim.Adam(net.parameters())
weights = torch.ones(2)
for _ in range(8):
    x = torch.randn(16, 4)
    out = net(x)
    losses = [F.mse_loss(out[:, k], x[:, k]) for k in range(2)]
    loss = sum(w * one for w, one in zip(weights, losses))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sizes = torch.tensor([one.item() for one in losses])
    weights = 2 * sizes / sizes.sum()
