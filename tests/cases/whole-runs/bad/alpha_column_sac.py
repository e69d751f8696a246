import torch
from torch import nn

torch.manual_seed(0)

q, pi = nn.Linear(6, 1), nn.Linear(4, 4)
oq, op = torch.optim.Adam(q.parameters()), torch.optim.Adam(pi.parameters())


class Buffer:
    def sample(self, n):
        return torch.randn(n, 4), torch.randn(n, 2), torch.randn(n).unsqueeze(-1), torch.randn(n, 4)


def qv(s, a):
    return q(torch.cat([s, a], -1)).squeeze(-1)


def critic_loss(pred, target):
    return ((pred - target) ** 2).mean()  # <- broadcast-loss


B = Buffer()
for _ in range(5):
    s, a, r, n = B.sample(16)
    with torch.no_grad():
        t = r + 0.99 * qv(n, pi(n)[:, :2]).unsqueeze(-1)
    l = critic_loss(qv(s, a), t)
    oq.zero_grad()
    l.backward()
    oq.step()
