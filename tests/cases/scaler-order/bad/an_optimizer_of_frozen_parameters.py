import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Linear(4, 3), nn.Linear(3, 1)
body.requires_grad_(False)
opt = torch.optim.Adam(body.parameters())  # <- scaler-order
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    scaler.scale(head(body(torch.randn(8, 4))).mean()).backward()
    scaler.step(opt)
    scaler.update()
