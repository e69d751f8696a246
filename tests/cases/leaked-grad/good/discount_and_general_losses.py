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

body, heads = net(3, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
b_opt, h_opt = torch.optim.Adam(body.parameters()), torch.optim.Adam(heads.parameters())
for x, y in data:
    b_opt.zero_grad()
    h_opt.zero_grad()
    h = body(x)
    discount_loss = F.mse_loss(heads[0](h), y)
    discount_loss.backward(retain_graph=True)
    general_loss = F.mse_loss(heads[1](h), y)
    general_loss.backward()
    b_opt.step()
    h_opt.step()
