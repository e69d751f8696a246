import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, state):
        return F.softmax(self.body(state), dim=-1)


def surrogate(policy, states, actions, advantages):
    current = policy(states).gather(1, actions)
    with torch.no_grad():
        reference = policy(states).gather(1, actions)
    ratio = current / reference
    return -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _ in range(8):
    states, actions = torch.randn(32, 4), torch.randint(0, 3, (32, 1))
    loss = surrogate(policy, states, actions, torch.randn(32, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
