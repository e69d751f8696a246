import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
        self.opt = torch.optim.Adam(self.model.parameters())

    def validate(self, data):
        self.model.eval()
        for x in data:
            loss = self.model(x).pow(2).mean()
            loss.backward()  # <- stale-grad
        self.model.train()

    def fit(self, data):
        for epoch in range(3):
            for x in data:
                self.model(x).pow(2).mean().backward()
                self.opt.step()
                self.opt.zero_grad()
            self.validate(data[:2])

Trainer().fit([torch.randn(8, 3) for _ in range(4)])
