import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())

    def forward(self, x):
        return self.body(x)

model = Model()
momentum_head = nn.Linear(16, 1)
optimizer = torch.optim.Adam(model.parameters())  # <- unoptimized-parameter
for _ in range(6):
    optimizer.zero_grad()
    F.mse_loss(momentum_head(model(torch.randn(6, 4))), torch.randn(6, 1)).backward()
    optimizer.step()
