import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

body, pi, v = mlp(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.Adam([*body.parameters(), *pi.parameters(), *v.parameters()])
for _ in range(8):
    x, ret = torch.randn(16, 4), torch.randn(16)
    h = body(x)
    dist = torch.distributions.Categorical(logits=pi(h))
    a, value = dist.sample(), v(h).squeeze(-1)
    adv = ret - value.detach()
    loss = -(dist.log_prob(a) * adv).mean() + 0.5 * F.mse_loss(value, ret) - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
