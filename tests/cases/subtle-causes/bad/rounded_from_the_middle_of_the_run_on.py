import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(60):
    x = torch.randn(8, 4)
    out = net(x)
    if step >= 20:
        out = out.round()  # <- zero-gradient
    opt.zero_grad()
    F.mse_loss(out, x[:, :1]).backward()
    opt.step()
