import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

enc, dec = mlp(4, 4), mlp()
first, second = torch.optim.SGD(enc.parameters(), 0.1), torch.optim.SGD(dec.parameters(), 0.1)
enc.requires_grad_(False)  # <- note: step-without-grad
for _ in range(8):
    second.zero_grad()
    dec(enc(torch.randn(8, 4))).square().mean().backward()
    first.step()
    second.step()
