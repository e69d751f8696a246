"""Deep Q-learning with a replay memory and a target network, on a small chain of states."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))
BATCH_SIZE, GAMMA, TAU = 16, 0.95, 0.05


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 24)
        self.layer2 = nn.Linear(24, 24)
        self.layer3 = nn.Linear(24, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


class Chain:
    def reset(self):
        self.place, self.time = 2, 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.place), 6).float()

    def step(self, action):
        self.place = max(0, min(5, self.place + (1 if action == 1 else -1)))
        self.time += 1
        return self.observe(), float(self.place == 5), self.place == 5 or self.time > 9


random.seed(0)
torch.manual_seed(0)
env = Chain()
policy_net, target_net = DQN(6, 2), DQN(6, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=2e-3, amsgrad=True)
memory = deque(maxlen=500)


def select_action(state, epsilon):
    if random.random() < epsilon:
        return random.randrange(2)
    with torch.no_grad():
        return policy_net(state.unsqueeze(0)).argmax(dim=1).item()


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*random.sample(list(memory), BATCH_SIZE), strict=True))
    states, next_states = torch.stack(batch.state), torch.stack(batch.next_state)
    actions = torch.tensor(batch.action).unsqueeze(1)
    rewards, dones = torch.tensor(batch.reward), torch.tensor(batch.done).float()

    q_values = policy_net(states).gather(1, actions).squeeze(1)
    with torch.no_grad():
        next_values = target_net(next_states).max(1).values
    expected = rewards + GAMMA * next_values * (1 - dones)
    loss = F.smooth_l1_loss(q_values, expected)

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 0.05)
    optimizer.step()
    return loss.item()


for episode in range(10):
    state, done, total, loss = env.reset(), False, 0.0, None
    while not done:
        action = select_action(state, epsilon=max(0.1, 1 - episode / 8))
        next_state, reward, done = env.step(action)
        memory.append(Transition(state, action, next_state, reward, done))
        state = next_state
        total += reward
        loss = optimize_model()
        with torch.no_grad():
            for target, source in zip(target_net.parameters(), policy_net.parameters(), strict=True):
                target.mul_(1 - TAU).add_(TAU * source)
    print(f"episode {episode} return {total} loss {loss}")
