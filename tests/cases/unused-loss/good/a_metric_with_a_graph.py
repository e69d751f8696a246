import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp()
opt = torch.optim.SGD(net.parameters(), 0.1)
seen = 0.0
for _ in range(8):
    x = torch.randn(8, 4)
    pred = net(x)
    mae = F.l1_loss(pred, x[:, :1])
    loss = F.mse_loss(pred, x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen += mae.item()
    print(f"{loss:.3f} {mae:.3f}")
