import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)).to(torch.bfloat16)
with torch.no_grad():
    for p in m.parameters():
        p.add_(1.0)
o = torch.optim.SGD(m.parameters(), 1e-6)


def fit():
    for _ in range(6):
        l = m(torch.randn(8, 8, dtype=torch.bfloat16)).float().pow(2).mean()
        o.zero_grad()
        l.backward()
        o.step()  # <- no-effect-step


fit()
