import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(3):
    x = torch.randn(8, 4)
    enc.zero_grad()
    loss = F.mse_loss(dec(enc(x)), x)
    loss.backward()  # <- stale-grad
    opt.step()
