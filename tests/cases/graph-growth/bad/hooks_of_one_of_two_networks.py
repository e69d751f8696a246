import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

other = nn.Linear(3, 3)
theirs = torch.optim.SGD(other.parameters(), 0.1)

def step():
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()

for i in range(40):
    step()
    if i % 3 == 0:
        other.register_forward_hook(lambda *_: None)  # <- hook-growth
    theirs.zero_grad()
    other(torch.randn(8, 3)).pow(2).mean().backward()
    theirs.step()
