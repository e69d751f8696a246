import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net, target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Sequential(nn.Linear(4, 1), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    wanted = target(torch.randn(8, 4)).detach()
    q = net(torch.randn(8, 4)).detach()  # <- no-graph
    loss = F.mse_loss(wanted, q)
    opt.zero_grad()
    loss.backward()
    opt.step()
