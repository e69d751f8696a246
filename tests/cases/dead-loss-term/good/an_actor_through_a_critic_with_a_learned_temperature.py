import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

actor, q = mlp(3, 2), mlp(4, 1)
log_alpha = torch.zeros((), requires_grad=True)
a_opt, q_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(q.parameters())
t_opt = torch.optim.Adam([log_alpha])
for _ in range(8):
    s = torch.randn(8, 3)
    mu, log_std = actor(s).chunk(2, 1)
    dist = torch.distributions.Normal(mu, log_std.exp())
    a = dist.rsample()
    loss = (log_alpha.exp().detach() * dist.log_prob(a) - q(torch.cat([s, a], 1))).mean()
    a_opt.zero_grad()
    loss.backward()
    a_opt.step()
    q_opt.zero_grad()
    F.mse_loss(q(torch.cat([s, a.detach()], 1)), torch.randn(8, 1)).backward()
    q_opt.step()
    t_opt.zero_grad()
    (-(log_alpha * (dist.log_prob(a).detach() - 1).mean())).backward()
    t_opt.step()
