import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec, dis = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(4, 1)
opts = [torch.optim.Adam(m.parameters()) for m in (enc, dec, dis)]
x = torch.randn(8, 4)
z = torch.tanh(enc(x))
rec = torch.tanh(dec(z))
loss_rec = F.mse_loss(rec, x)
loss_enc = z.pow(2).mean() + loss_rec
loss_dec = loss_rec + F.softplus(-dis(rec)).mean()
opts[0].zero_grad()
loss_enc.backward()  # <- freed-graph
opts[0].step()
opts[1].zero_grad()
loss_dec.backward()
opts[1].step()
