import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec, critic = mlp(4, 4), mlp(2, 4), mlp(6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
theirs = torch.optim.Adam(critic.parameters())
for _ in range(8):
    x = torch.randn(8, 4)
    mean, scale = enc(x).chunk(2, 1)
    posterior = torch.distributions.Normal(mean, F.softplus(scale))
    loss = F.mse_loss(dec(posterior.rsample()), x) + 0.1 * posterior.mean.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    theirs.zero_grad()
    critic(torch.cat([x, posterior.sample()], 1)).square().mean().backward()
    theirs.step()
