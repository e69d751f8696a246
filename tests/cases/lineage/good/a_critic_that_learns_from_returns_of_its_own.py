import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


actor, critic = mlp(4, 2), mlp(4, 1)
a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(8):
    s, r, s2 = torch.randn(16, 4), torch.randn(16, 1), torch.randn(16, 4)
    with torch.no_grad():
        goal = r + 0.9 * critic(s2)
    value = critic(s)
    dist = torch.distributions.Categorical(logits=actor(s))
    a = dist.sample()
    c_loss = F.mse_loss(value, goal)
    a_loss = -(dist.log_prob(a).unsqueeze(1) * (goal - value).detach()).mean()
    a_opt.zero_grad()
    c_opt.zero_grad()
    (a_loss + c_loss).backward()
    a_opt.step()
    c_opt.step()
