from types import SimpleNamespace

import torch
from torch import nn

torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.RNNCell(3, 4), nn.Linear(4, 1)

    def forward(self, x, state):
        state = self.rnn(x, state)
        return SimpleNamespace(y=self.head(state), state=state)

class Trainer:
    def __init__(self):
        self.model = Model()
        self.opt = torch.optim.Adam(self.model.parameters())
        self.state = torch.zeros(2, 4)

    def step(self, x):
        out = self.model(x, self.state)
        loss = out.y.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.state = out.state  # <- freed-graph

trainer = Trainer()
for _ in range(3):
    trainer.step(torch.randn(2, 3))
