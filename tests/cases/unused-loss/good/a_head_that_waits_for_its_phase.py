import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

body, first, second = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.Adam([*body.parameters(), *first.parameters(), *second.parameters()])
for step in range(20):
    x = torch.randn(8, 4)
    h = body(x)
    one, two = F.mse_loss(first(h), x[:, :1]), F.mse_loss(second(h), x[:, 1:2])
    loss = one if step < 10 else one + two
    opt.zero_grad()
    loss.backward()
    opt.step()
