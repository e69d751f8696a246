import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


class Agent:
    def __init__(self):
        self.actor, self.critic = mlp(4, 2), mlp(6, 1)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def act(self, s):
        with torch.no_grad():  # <- unreached-parameter
            return torch.tanh(self.actor(s))

    def update(self, s, a, r):
        q_loss = F.mse_loss(self.critic(torch.cat([s, a], 1)), r)
        self.critic_opt.zero_grad()  # also cleared-grad
        q_loss.backward()
        self.critic_opt.step()
        pi_loss = -self.critic(torch.cat([s, self.act(s)], 1)).mean()
        self.actor_opt.zero_grad()
        pi_loss.backward()
        self.actor_opt.step()

agent = Agent()
for _ in range(8):
    s = torch.randn(16, 4)
    agent.update(s, agent.act(s), torch.randn(16, 1))
