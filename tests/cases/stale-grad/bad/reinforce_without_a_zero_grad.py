import torch
from torch import nn

torch.manual_seed(0)

class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.opt = torch.optim.Adam(self.policy.parameters())

    def finish(self, log_probs, rewards):
        returns = torch.tensor(rewards)
        for log_prob, ret in zip(log_probs, returns):
            (-log_prob * ret).backward()  # <- stale-grad
        self.opt.step()

agent = Agent()
for episode in range(3):
    log_probs, rewards = [], []
    for _ in range(4):
        dist = torch.distributions.Categorical(logits=agent.policy(torch.randn(4)))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        rewards.append(float(action))
    agent.finish(log_probs, rewards)
