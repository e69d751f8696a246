import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

class Agent:
    def __init__(self):
        self.cell, self.out, self.state = nn.GRUCell(3, 8), nn.Linear(8, 1), None

    def reset(self):
        self.state = torch.zeros(1, 8).expand(4, -1)

    def __call__(self, x):
        self.state = self.cell(x, self.state)
        return self.out(self.state)

agent = Agent()
target = copy.deepcopy(agent)
opt = torch.optim.Adam([*agent.cell.parameters(), *agent.out.parameters()])
for episode in range(9):
    agent.reset(), target.reset()
    steps = [torch.randn(4, 3) for _ in range(12)]
    values = torch.stack([agent(x) for x in steps])
    goals = torch.stack([target(x) for x in steps]).detach()
    opt.zero_grad()
    F.mse_loss(values[:-1], goals[1:]).backward()
    opt.step()
