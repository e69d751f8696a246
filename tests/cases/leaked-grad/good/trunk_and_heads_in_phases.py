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

trunk, heads = net(3, 4), [net(4, 1), net(4, 1)]
t_opt = torch.optim.Adam(trunk.parameters())
h_opts = [torch.optim.Adam(head.parameters()) for head in heads]
for x, y in data:
    t_opt.zero_grad()
    h_opts[0].zero_grad()
    F.mse_loss(heads[0](trunk(x)), y).backward()
    h_opts[0].step()
    h_opts[1].zero_grad()
    F.l1_loss(heads[1](trunk(x)), y).backward()
    h_opts[1].step()
    t_opt.step()
