import torch
from torch import nn

torch.manual_seed(0)

class Agent:
    def __init__(self):
        self.net = nn.LSTMCell(3, 6)
        self.value = nn.Linear(6, 1)
        self.opt = torch.optim.Adam([*self.net.parameters(), *self.value.parameters()])
        self.state = (torch.zeros(1, 6), torch.zeros(1, 6))

    def learn(self, obs, target):
        h, c = self.state
        h, c = self.net(obs, (h, c))
        loss = (self.value(h) - target).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.state = (h, c)  # <- freed-graph

agent = Agent()
for _ in range(3):
    agent.learn(torch.randn(1, 3), torch.ones(1, 1))
