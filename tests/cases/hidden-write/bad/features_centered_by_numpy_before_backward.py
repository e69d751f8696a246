import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Analyst:
    def __init__(self):
        self.spread = []

    def look(self, features):
        array = features.detach().numpy()
        array -= array.mean(0)  # <- hidden-write
        self.spread.append(float(np.abs(array).max()))


body, head, analyst = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1), Analyst()
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(4):
    x = torch.randn(16, 4)
    features = body(x)
    loss = (head(features) - x[:, :1]).square().mean()
    analyst.look(features)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
