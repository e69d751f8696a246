import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
opts = {"enc": torch.optim.Adam(enc.parameters()), "dec": torch.optim.Adam(dec.parameters())}
for _ in range(8):
    for o in opts.values():
        o.zero_grad()
    l = F.mse_loss(dec(torch.tanh(enc(torch.randn(8, 4)))), torch.randn(8, 4))
    l.backward()  # <- note: never-stepped
    for k in ("dec",):
        opts[k].step()
