import torch
from torch import nn

torch.manual_seed(0)

b, h = nn.Linear(4, 4), nn.Linear(4, 1)
o = torch.optim.SGD([{"params": b.parameters(), "lr": 0.0}, {"params": h.parameters(), "lr": 0.1}])
for i in range(12):
    if i == 6:
        o.param_groups[0]["lr"] = 0.01
    o.zero_grad()
    h(torch.relu(b(torch.randn(8, 4)))).pow(2).mean().backward()
    o.step()
