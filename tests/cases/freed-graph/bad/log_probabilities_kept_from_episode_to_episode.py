import torch
from torch import nn

torch.manual_seed(0)

class Reinforce:
    def __init__(self):
        self.policy = nn.Linear(3, 2)
        self.opt = torch.optim.Adam(self.policy.parameters())
        self.log_probs, self.rewards = [], []

    def act(self, s):
        dist = torch.distributions.Categorical(logits=self.policy(s))
        a = dist.sample()
        self.log_probs.append(dist.log_prob(a))
        self.rewards.append(float(a))

    def learn(self):
        r = torch.tensor(self.rewards)
        loss = -(torch.stack(self.log_probs) * (r - r.mean())).sum()  # <- freed-graph
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

agent = Reinforce()
for episode in range(3):
    for _ in range(5):
        agent.act(torch.randn(3))
    agent.learn()
