import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

actor = mlp(4, 4)
opt = torch.optim.Adam(actor.parameters())
for _ in range(8):
    mean, scale = actor(torch.randn(8, 4)).chunk(2, 1)
    dist = torch.distributions.Normal(mean, F.softplus(scale) + 0.1)
    action = dist.sample()
    loss = -(dist.log_prob(action).sum(1) * action.square().sum(1)).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
