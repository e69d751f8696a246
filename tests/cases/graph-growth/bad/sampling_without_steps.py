import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

def collect(wanted):
    accepted = torch.empty(0, 1)
    while len(accepted) < wanted:
        proposal = model(torch.randn(4, 3))
        accepted = torch.cat([accepted, proposal])  # <- graph-growth
    return accepted

for _ in range(5):
    step()
samples = collect(400)
