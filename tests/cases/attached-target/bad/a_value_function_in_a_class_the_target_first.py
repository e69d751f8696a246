import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))  # also note: unreached-parameter
v = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam([*q.parameters(), *v.parameters()])

def sample(n=16):
    return torch.randn(n, 4), torch.randint(2, (n, 1)), torch.randn(n), torch.randn(n, 4), (torch.rand(n) < 0.2).float()

class Learner:
    def goal(self, r, s2, done):
        return r.unsqueeze(1) + v(s2) * 0.9 * (1 - done).unsqueeze(1)  # <- note: attached-target

    def step(self):
        s, _, r, s2, done = sample()
        loss = F.mse_loss(self.goal(r, s2, done), v(s))
        opt.zero_grad()
        loss.backward()
        opt.step()

learner = Learner()
for _ in range(5):
    learner.step()
