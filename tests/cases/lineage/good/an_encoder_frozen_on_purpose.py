import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


encoder, head = mlp(4, 8), nn.Linear(8, 1)
encoder.requires_grad_(False)
opt = torch.optim.Adam(head.parameters())
for _ in range(8):
    x = torch.randn(16, 4)
    with torch.no_grad():
        h = encoder(x)
    loss = F.mse_loss(head(h), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
