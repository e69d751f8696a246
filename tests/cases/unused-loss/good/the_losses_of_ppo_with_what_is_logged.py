import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

pi, v = mlp(4, 2), mlp(4, 1)
opt = torch.optim.Adam([*pi.parameters(), *v.parameters()])
x, old = torch.randn(16, 4), torch.randn(16)
a, ret = torch.randint(2, (16,)), torch.randn(16)
for _ in range(8):
    dist = torch.distributions.Categorical(logits=pi(x))
    logp = dist.log_prob(a)
    ratio = (logp - old).exp()
    pi_loss = -torch.min(ratio * ret, ratio.clamp(0.8, 1.2) * ret).mean()
    v_loss = F.mse_loss(v(x).squeeze(-1), ret)
    approx_kl = (old - logp).mean()
    ent = dist.entropy().mean()
    loss = pi_loss + 0.5 * v_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(approx_kl.item(), ent.item())
