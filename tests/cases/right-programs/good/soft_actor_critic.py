import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

actor, q = nn.Linear(3, 2), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
target = copy.deepcopy(q).requires_grad_(False)
log_alpha = torch.zeros((), requires_grad=True)
opt_a, opt_q = torch.optim.Adam(actor.parameters()), torch.optim.Adam(q.parameters())
opt_alpha = torch.optim.Adam([log_alpha])

def act(s):
    mu, log_std = actor(s).chunk(2, -1)
    dist = torch.distributions.Normal(mu, log_std.clamp(-5, 2).exp())
    raw = dist.rsample()
    return torch.tanh(raw), dist.log_prob(raw).squeeze(-1)

for step in range(5):
    s, a, r, s2 = torch.randn(16, 3), torch.rand(16, 1), torch.randn(16, 1), torch.randn(16, 3)
    with torch.no_grad():
        a2, logp2 = act(s2)
        goal = r + 0.99 * (target(torch.cat([s2, a2], 1)) - log_alpha.exp() * logp2.unsqueeze(1))
    opt_q.zero_grad()
    F.mse_loss(q(torch.cat([s, a], 1)), goal).backward()
    opt_q.step()
    for p in q.parameters():
        p.requires_grad = False
    new_a, logp = act(s)
    actor_loss = (log_alpha.exp().detach() * logp - q(torch.cat([s, new_a], 1)).squeeze(1)).mean()
    opt_a.zero_grad()
    actor_loss.backward()
    opt_a.step()
    for p in q.parameters():
        p.requires_grad = True
    opt_alpha.zero_grad()
    (-(log_alpha * (logp.detach() - 1.0)).mean()).backward()
    opt_alpha.step()
    with torch.no_grad():
        for t, p in zip(target.parameters(), q.parameters()):
            t.mul_(0.995).add_(0.005 * p)
