import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
v = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam([*q.parameters(), *v.parameters()])

def sample(n=16):
    return torch.randn(n, 4), torch.randint(2, (n, 1)), torch.randn(n), torch.randn(n, 4), (torch.rand(n) < 0.2).float()

for _ in range(5):
    s, _, r, s2, _ = sample()
    loss = F.mse_loss(v(s), v(s2)) + F.mse_loss(s + 0.9 * q(s).repeat(1, 2), s2)
    opt.zero_grad()
    loss.backward()
    opt.step()
