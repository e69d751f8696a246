import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, s):
        h = torch.tanh(self.trunk(s))
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

model = ActorCritic()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for update in range(3):
    states = torch.randn(32, 4)
    with torch.no_grad():
        dist, values = model(states)
        actions = dist.sample()
        old = dist.log_prob(actions)
    returns = torch.randn(32)
    advantages = returns - values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for epoch in range(2):
        for ids in torch.randperm(32).split(8):
            dist, value = model(states[ids])
            ratio = (dist.log_prob(actions[ids]) - old[ids]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            pi_loss = -torch.min(ratio * advantages[ids], clipped * advantages[ids]).mean()
            loss = pi_loss + 0.5 * F.mse_loss(value, returns[ids]) - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
