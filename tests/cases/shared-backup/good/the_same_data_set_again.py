import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)

for epoch in range(4):
    model.zero_grad()
    loss_fn(model(x), y).backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
        p.data = p.data.clamp_(-1, 1)
        p.data = p.data.contiguous()
        kept = p.data
        kept[0].mul_(0.99)
        p.data = kept
