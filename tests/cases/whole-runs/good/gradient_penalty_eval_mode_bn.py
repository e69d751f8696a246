import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
o = torch.optim.SGD(m.parameters(), 0.01)
m.train()
for i in range(10):
    x = torch.randn(8, 4)
    if i >= 5:
        for k in m.modules():
            if isinstance(k, nn.BatchNorm1d):
                k.eval()
    o.zero_grad()
    m(x).pow(2).mean().backward()
    o.step()
