import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

e = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
o = torch.optim.Adam(e.parameters())


def cdist(a):
    s = (a * a).sum(1)
    return (s[:, None] + s[None] - 2 * a @ a.t()).clamp(min=1e-12).sqrt()


for _ in range(8):
    x, y = torch.randn(12, 4), torch.randint(3, (12,))
    z = F.normalize(e(x), dim=1)
    D = cdist(z)
    same = (y[:, None] == y[None]).float()
    pos = (D * same).max(1)[0]
    neg = (D + 10 * same).min(1)[0]
    l = F.relu(pos - neg + 0.3).mean()
    o.zero_grad()
    l.backward()
    o.step()
