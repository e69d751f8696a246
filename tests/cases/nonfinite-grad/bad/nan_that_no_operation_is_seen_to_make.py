import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

def loss_of(x):
    return model(x).pow(2).mean()

for step in range(20):
    opt.zero_grad()
    loss_of(torch.randn(8, 4)).backward()
    if step == 9:
        model[0].weight.grad[0, 0] = float("nan")
    opt.step()  # <- nonfinite-grad
