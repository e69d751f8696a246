import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

def loss_of(x):
    return model(x).pow(2).mean()

for step in range(8):
    grads = torch.autograd.grad(loss_of(torch.randn(8, 4)), list(model.parameters()))
    for p, g in zip(model.parameters(), grads):
        p.grad = g / (g.norm() + 1e-12)
    opt.step()
