import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
v = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))  # also note: unreached-parameter
opt = torch.optim.Adam([*q.parameters(), *v.parameters()])

def sample(n=16):
    return torch.randn(n, 4), torch.randint(2, (n, 1)), torch.randn(n), torch.randn(n, 4), (torch.rand(n) < 0.2).float()

old = copy.deepcopy(q)
for _ in range(5):
    s, a, r, s2, done = sample()
    with torch.no_grad():
        goal = r + 0.95 * (1 - done) * old(s2).max(1).values
    loss = F.mse_loss(q(s).gather(1, a).squeeze(1), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
