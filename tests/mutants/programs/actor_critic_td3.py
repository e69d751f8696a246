"""Deterministic actor-critic with delayed policy updates, as TD3 makes them."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.l1 = nn.Linear(state_dim, 24)
        self.l2 = nn.Linear(24, action_dim)

    def forward(self, state):
        return torch.tanh(self.l2(F.relu(self.l1(state))))


class Critic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.l1, self.l2 = nn.Linear(state_dim + action_dim, 24), nn.Linear(24, 1)
        self.l3, self.l4 = nn.Linear(state_dim + action_dim, 24), nn.Linear(24, 1)

    def forward(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.l2(F.relu(self.l1(sa))), self.l4(F.relu(self.l3(sa)))

    def Q1(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.l2(F.relu(self.l1(sa)))


class TD3:
    def __init__(self, state_dim, action_dim, discount=0.97, tau=0.02, policy_noise=0.2, policy_freq=2):
        self.actor = Actor(state_dim, action_dim)
        self.actor_target = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic = Critic(state_dim, action_dim)
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.discount, self.tau, self.policy_noise, self.policy_freq = discount, tau, policy_noise, policy_freq
        self.total_it = 0

    def train(self, state, action, next_state, reward, not_done):
        self.total_it += 1
        with torch.no_grad():
            noise = (torch.randn_like(action) * self.policy_noise).clamp(-0.5, 0.5)
            next_action = (self.actor_target(next_state) + noise).clamp(-1, 1)
            target_q1, target_q2 = self.critic_target(next_state, next_action)
            target_q = reward + not_done * self.discount * torch.min(target_q1, target_q2)
        current_q1, current_q2 = self.critic(state, action)
        critic_loss = F.mse_loss(current_q1, target_q) + F.mse_loss(current_q2, target_q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic.Q1(state, self.actor(state)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            self.update_targets()
        return critic_loss.item()

    def update_targets(self):
        for net, target_net in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
            for param, target_param in zip(net.parameters(), target_net.parameters(), strict=True):
                target_param.data.copy_(self.tau * param.data + (1 - self.tau) * target_param.data)


torch.manual_seed(21)
policy = TD3(3, 1)
state = torch.randn(16, 3)
for t in range(40):
    with torch.no_grad():
        action = (policy.actor(state) + 0.1 * torch.randn(16, 1)).clamp(-1, 1)
    next_state = 0.9 * state + 0.1 * action
    reward = -next_state.pow(2).sum(1, keepdim=True)
    not_done = (torch.rand(16, 1) > 0.05).float()
    loss = policy.train(state, action, next_state, reward, not_done)
    state = torch.where(not_done.bool(), next_state, torch.randn(16, 3))
    if t % 10 == 0:
        print(f"t {t} critic loss {loss:.4f}")
