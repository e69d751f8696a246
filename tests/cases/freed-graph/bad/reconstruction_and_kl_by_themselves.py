import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
x = torch.randn(8, 4)
mu, logvar = enc(x).chunk(2, 1)
z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
recon = F.mse_loss(dec(z), x)
kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
opt.zero_grad()
recon.backward()  # <- freed-graph
kl.backward()
opt.step()
