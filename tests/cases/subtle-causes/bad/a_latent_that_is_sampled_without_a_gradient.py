import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec = mlp(4, 4), mlp(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
for _ in range(8):
    x = torch.randn(8, 4)
    mean, scale = enc(x).chunk(2, 1)
    posterior = torch.distributions.Normal(mean, F.softplus(scale))
    z = posterior.sample()  # <- dead-loss-term
    rebuilt = F.mse_loss(dec(z), x)
    loss = rebuilt + 0.1 * torch.distributions.kl_divergence(posterior, prior).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
