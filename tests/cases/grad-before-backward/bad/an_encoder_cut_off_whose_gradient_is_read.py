import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*enc.parameters(), *head.parameters()])

def embed(x):
    h = enc(x)
    return h.detach()  # <- unreached-parameter

for _ in range(3):
    loss = F.mse_loss(head(torch.relu(embed(torch.randn(16, 4)))), torch.ones(16, 1))
    opt.zero_grad()
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in enc.parameters()]).norm()
    opt.step()
