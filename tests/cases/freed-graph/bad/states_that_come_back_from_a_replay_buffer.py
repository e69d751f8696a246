import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)

class Buffer:
    def __init__(self):
        self.items = []

    def push(self, *item):
        self.items.append(item)

    def sample(self, n):
        return random.sample(self.items, n)

net, head = nn.LSTMCell(3, 4), nn.Linear(4, 2)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
buffer, state = Buffer(), (torch.zeros(1, 4), torch.zeros(1, 4))
for step in range(6):
    obs = torch.randn(1, 3)
    before, state = state, net(obs, state)
    buffer.push(obs, before, torch.randn(1, 2))
    if step > 1:
        loss = 0
        for obs, (h, c), target in buffer.sample(2):
            h, _ = net(obs, (h, c))  # <- freed-graph
            loss = loss + F.mse_loss(head(h), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
