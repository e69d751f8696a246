import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())

def train_step(x, y):
    optimizer.zero_grad  # <- stale-grad
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

for _ in range(3):
    train_step(torch.randn(8, 3), torch.randn(8, 1))
