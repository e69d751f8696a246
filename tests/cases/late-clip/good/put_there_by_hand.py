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

copies = [p.detach().clone().requires_grad_() for p in model.parameters()]
c_opt = torch.optim.SGD(copies, lr=0.1)
for x, y in data:
    for p, g in zip(copies, torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters()))):
        p.grad = g
    nn.utils.clip_grad_norm_(copies, 1.0)
    c_opt.step()
