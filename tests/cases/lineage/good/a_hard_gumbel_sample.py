import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


enc, dec = mlp(4, 6), mlp(6, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(8):
    x = torch.randn(16, 4)
    code = F.gumbel_softmax(enc(x), tau=0.7, hard=True)
    loss = F.mse_loss(dec(code), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(code.argmax(1).unique().numel())
