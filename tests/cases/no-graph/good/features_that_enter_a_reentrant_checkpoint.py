import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

body, head = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(head.parameters())
for _ in range(4):
    feats = body(torch.randn(8, 4)).detach().requires_grad_()
    loss = checkpoint(head, feats, use_reentrant=True).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
