"""Soft actor-critic: twin critics, target critics, an actor and a learned temperature."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

STATE, ACTION, GAMMA, TAU = 4, 2, 0.98, 0.02


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, outputs))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(STATE + ACTION, 1), mlp(STATE + ACTION, 1)

    def forward(self, state, action):
        sa = torch.cat([state, action], dim=1)
        return self.q1(sa), self.q2(sa)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(STATE, 2 * ACTION)

    def forward(self, state):
        mean, log_std = self.net(state).chunk(2, dim=-1)
        normal = Normal(mean, log_std.clamp(-5, 2).exp())
        x = normal.rsample()
        action = torch.tanh(x)
        log_prob = normal.log_prob(x) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(dim=1, keepdim=True)


class SAC:
    def __init__(self):
        self.actor, self.critic = Actor(), Critic()
        self.critic_target = copy.deepcopy(self.critic)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.target_entropy = -float(ACTION)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.alpha_optim = torch.optim.Adam([self.log_alpha], lr=1e-3)

    def update_critic(self, state, action, reward, next_state):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_log_pi = self.actor(next_state)
            q1_next, q2_next = self.critic_target(next_state, next_action)
            target = reward + GAMMA * (torch.min(q1_next, q2_next) - alpha * next_log_pi)
        q1, q2 = self.critic(state, action)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        return critic_loss.item()

    def update_actor(self, state):
        pi, log_pi = self.actor(state)
        q1, q2 = self.critic(state, pi)
        actor_loss = (self.log_alpha.exp().detach() * log_pi - torch.min(q1, q2)).mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()

        alpha_loss = -(self.log_alpha * (log_pi + self.target_entropy).detach()).mean()
        self.alpha_optim.zero_grad()
        alpha_loss.backward()
        self.alpha_optim.step()
        return actor_loss.item()

    def soft_update(self):
        with torch.no_grad():
            for target, source in zip(self.critic_target.parameters(), self.critic.parameters(), strict=True):
                target.data.copy_(target.data * (1.0 - TAU) + source.data * TAU)


torch.manual_seed(5)
agent = SAC()
for updates in range(30):
    state, action = torch.randn(16, STATE), torch.rand(16, ACTION) * 2 - 1
    next_state = 0.9 * state + 0.1 * torch.randn(16, STATE)
    reward = -(action - state[:, :ACTION]).pow(2).sum(dim=1, keepdim=True)
    critic_loss = agent.update_critic(state, action, reward, next_state)
    actor_loss = agent.update_actor(state)
    agent.soft_update()
    if updates % 10 == 0:
        print(f"update {updates} critic {critic_loss:.3f} actor {actor_loss:.3f}")
