import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

net = mlp()
opt = torch.optim.Adam(net.parameters())
schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
print(net(torch.randn(2, 4)).mean().item())
for step in range(8):
    opt.step()
    schedule.step()
