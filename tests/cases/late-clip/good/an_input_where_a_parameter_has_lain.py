import gc

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

for x, y in data[:3]:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
places = {id(p) for p in model.parameters()}
del model, opt
gc.collect()
others = []
while len(others) < 1000:
    x = torch.randn(1, 3, requires_grad=True)
    if id(x) in places:
        break
    others.append(x)
net = nn.Linear(3, 1).requires_grad_(False)
for _ in range(6):
    net(x).sum().backward()
    x.grad.data.clamp_(-0.1, 0.1)
    x.data.add_(x.grad.data)
    x.grad.zero_()
