import copy

import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.best = copy.deepcopy(self.model)
        self.opt = torch.optim.Adam(self.model.parameters())

    def fit(self, steps):
        for _ in range(steps):
            self.best.zero_grad()
            loss = self.model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            self.opt.step()

Trainer().fit(3)
