import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
opts = [torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())]
for _ in range(2):
    x = torch.randn(8, 4)
    loss = F.mse_loss(dec(torch.tanh(enc(x))), x)
    for opt in opts:
        opt.zero_grad()
    for i, opt in enumerate(opts):
        loss.backward(retain_graph=i == 0)  # <- repeated-backward
    for opt in opts:
        opt.step()
