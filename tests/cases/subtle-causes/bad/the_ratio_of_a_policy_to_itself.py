import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = mlp(4, 3), mlp()
    def forward(self, s):
        return torch.distributions.Categorical(logits=self.actor(s)), self.critic(s)

policy = Policy()
opt = torch.optim.Adam(policy.parameters())
states, actions, returns = torch.randn(32, 4), torch.randint(3, (32,)), torch.randn(32)
for epoch in range(10):
    dist, value = policy(states)
    before = dist.log_prob(actions)
    now = dist.log_prob(actions)
    ratio = torch.exp(now - before)  # <- zero-gradient
    advantage = returns - value.squeeze(1).detach()
    loss = -(ratio * advantage).mean() + F.mse_loss(value.squeeze(1), returns)
    opt.zero_grad()
    loss.backward()
    opt.step()
