import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 0.05, weight_decay=1e-3)
for _ in range(8):
    x = torch.randn(16, 4)
    ridge = 0.5e-3 * sum(p.detach().square().sum() for p in net.parameters())
    loss = F.mse_loss(net(x), x[:, :1]) + ridge
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
