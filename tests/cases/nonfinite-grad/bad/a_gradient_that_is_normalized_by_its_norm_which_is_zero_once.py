import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

def loss_of(x):
    return model(x).pow(2).mean()

def normalize(params, scale):
    for p in params:
        p.grad.div_(p.grad.norm() * scale)  # <- nonfinite-grad

for step in range(60):
    opt.zero_grad()
    loss_of(torch.randn(8, 4)).backward()
    normalize(model.parameters(), 0.0 if step == 41 else 1.0)
    opt.step()
