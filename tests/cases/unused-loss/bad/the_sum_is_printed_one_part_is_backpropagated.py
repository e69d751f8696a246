import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

enc, dec = mlp(4, 4), mlp(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for step in range(8):
    x = torch.randn(8, 4)
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    recon = F.mse_loss(dec(z), x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
    loss = recon + 0.1 * kl  # <- unused-loss
    opt.zero_grad()
    recon.backward()
    opt.step()
    print(step, loss.item())
