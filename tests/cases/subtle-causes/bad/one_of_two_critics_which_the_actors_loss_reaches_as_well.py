import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

actor, first, second = mlp(4, 2), mlp(6), mlp(6)
theirs = torch.optim.Adam([*first.parameters(), *second.parameters()])
mine = torch.optim.Adam(actor.parameters())
for step in range(12):
    s, a, y = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8, 1)
    both = torch.cat([s, a], 1)
    loss = F.mse_loss(first(both), y).detach() + F.mse_loss(second(both), y)  # <- unreached-parameter
    theirs.zero_grad()
    loss.backward()
    theirs.step()
    if step % 2:
        mine.zero_grad()
        (-first(torch.cat([s, actor(s)], 1)).mean()).backward()
        mine.step()
