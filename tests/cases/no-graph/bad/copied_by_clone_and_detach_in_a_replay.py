import torch
from torch import nn

torch.manual_seed(0)

class Memory:
    def __init__(self):
        self.rows = []

    def push(self, x):
        self.rows.append(x.clone().detach())  # <- no-graph

    def all(self):
        return torch.stack(self.rows)

value = nn.Linear(4, 1)
memory = Memory()
for s in torch.randn(5, 4):
    memory.push(value(s))
loss = (memory.all() - 1).pow(2).mean()
loss.backward()
