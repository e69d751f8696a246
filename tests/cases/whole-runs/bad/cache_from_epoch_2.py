import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
o = torch.optim.Adam(m.parameters())
history = {"loss": []}


def step(i):
    l = m(torch.randn(8, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
    if i > 150:
        history["loss"].append(l)  # <- graph-growth


for i in range(260):
    step(i)
