import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))

model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())

schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
for _ in range(9):
    opt.step()
    schedule.step()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
