import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

other = nn.Linear(3, 3)
theirs = torch.optim.SGD(other.parameters(), 0.1)
kept = []

def step():
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()

for i in range(40):
    step()
    loss = other(torch.randn(8, 3)).pow(2).mean()
    theirs.zero_grad()
    loss.backward()
    theirs.step()
    kept.append(loss)  # <- graph-growth
