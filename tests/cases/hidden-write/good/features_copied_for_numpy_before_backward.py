import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
seen = []
for _ in range(4):
    x = torch.randn(16, 4)
    features = body(x)
    shown = features.detach().numpy()
    centered = features.detach().numpy().copy()
    centered -= centered.mean(0)
    out = torch.sigmoid(head(features))
    loss = (out - x[:, :1]).square().mean()
    logged = out.detach().numpy().reshape(-1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    logged += 1  # after the backward call
    seen.append(float(np.abs(centered).max() + shown.max() + logged.mean()))
    weights = head.weight.detach().numpy()
