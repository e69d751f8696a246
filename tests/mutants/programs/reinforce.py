"""Policy gradient with a learned baseline, episode by episode."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 24)
        self.dropout = nn.Dropout(p=0.1)
        self.action_head = nn.Linear(24, 2)
        self.value_head = nn.Linear(24, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


class Balance:
    """A pole that falls to one side; the actions push it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.normal(0, 0.1, 4)
        return self.state.copy()

    def step(self, action):
        x, v, a, w = self.state
        push = 1.0 if action == 1 else -1.0
        self.state = np.array([x + 0.1 * v, v + 0.1 * push, a + 0.1 * w, w + 0.1 * (a * 2 - push)])
        return self.state.copy(), 1.0, bool(abs(self.state[2]) > 0.5)


eps = np.finfo(np.float32).eps.item()
torch.manual_seed(543)
env = Balance(543)
model = Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)


def select_action(state):
    state = torch.from_numpy(state).float()
    probs, state_value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append((m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    policy_losses, value_losses, returns = [], [], []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=True):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R.view(1)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main():
    running_reward = 10
    for i_episode in range(24):
        state = env.reset()
        ep_reward = 0
        for _ in range(15):
            action = select_action(state)
            state, reward, done = env.step(action)
            model.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        loss = finish_episode()
        if i_episode % 8 == 0:
            print(f"Episode {i_episode}\tLast reward: {ep_reward:.2f}\tLoss: {loss:.3f}\t{running_reward:.2f}")


if __name__ == "__main__":
    main()
