import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp():
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))

class Novelty(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = mlp(), mlp()

    def forward(self, x):
        return F.mse_loss(self.a(x), self.b(x).detach())  # also note: unreached-parameter

model = Novelty()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).backward()
    optimizer.step()
