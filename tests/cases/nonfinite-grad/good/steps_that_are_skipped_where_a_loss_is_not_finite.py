import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

def loss_of(x):
    return model(x).pow(2).mean()

for step in range(12):
    opt.zero_grad()
    loss = loss_of(torch.randn(8, 4)) * (float("nan") if step % 4 == 1 else 1.0)
    if not torch.isfinite(loss):
        continue
    loss.backward()
    opt.step()
