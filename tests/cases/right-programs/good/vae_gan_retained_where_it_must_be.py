import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec, dis = nn.Linear(4, 4), nn.Linear(2, 4), nn.Linear(4, 1)
opt_e, opt_d, opt_c = (torch.optim.Adam(m.parameters()) for m in (enc, dec, dis))
for step in range(3):
    x = torch.randn(8, 4)
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    rec = torch.tanh(dec(z))
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
    rec_loss = F.mse_loss(rec, x)
    loss_c = F.softplus(-dis(x)).mean() + F.softplus(dis(rec.detach())).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    opt_e.zero_grad()
    opt_d.zero_grad()
    (rec_loss + kl + F.softplus(-dis(rec)).mean()).backward()
    opt_e.step()
    opt_d.step()
