import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
o = torch.optim.Adam(m.parameters())
for ep_ in range(3):
    m.train()
    for _ in range(4):
        mu, lv = m(torch.randn(8, 4)).chunk(2, 1)
        y = torch.randn(8, 1)
        l = (0.5 * torch.exp(-lv) * (y - mu) ** 2 + 0.5 * lv).mean()
        o.zero_grad()
        l.backward()
        o.step()
    with torch.no_grad():
        torch.stack([m(torch.randn(4, 4)) for _ in range(6)]).var(0)
