import torch
from torch import nn

torch.manual_seed(0)

force = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(force.parameters())
x = torch.zeros(4, 2)
for step in range(3):
    x = x + 0.1 * force(x)  # <- freed-graph
    loss = (x - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
