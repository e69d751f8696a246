import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

actor, critic, log_std = mlp(4, 2), mlp(6, 1), nn.Parameter(torch.zeros(2))
o = torch.optim.Adam([*actor.parameters(), log_std], 0.01)
c = torch.optim.Adam(critic.parameters(), 0.01)
for turn in range(12):
    s = torch.randn(8, 4)
    mu = actor(s)
    a = torch.normal(mu, log_std.exp().expand_as(mu))
    reward = -(a - s[:, :2]).pow(2).sum(1, keepdim=True).detach()
    c.zero_grad()
    (critic(torch.cat([s, a], 1)) - reward).pow(2).mean().backward(retain_graph=turn % 6 == 5)
    c.step()
    if turn % 6 == 5:
        log_prob = -((a - mu) / log_std.exp()).pow(2).sum(1) / 2 - log_std.sum()
        o.zero_grad()
        (-log_prob * reward[:, 0]).mean().backward()
        o.step()
