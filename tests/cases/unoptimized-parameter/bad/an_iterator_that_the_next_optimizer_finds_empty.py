import torch
from torch import nn

torch.manual_seed(0)


class Solver:
    def __init__(self):
        self.trunk, self.target_head = nn.Linear(6, 12), nn.Linear(12, 1)
        self.model = nn.Sequential(self.trunk, nn.Tanh(), self.target_head)
        body = {id(one) for one in self.trunk.parameters()}
        self.rest = filter(lambda one: id(one) not in body, self.model.parameters())
        self.optimizer = self.build(0.1)

    def build(self, rate):
        groups = [{"params": self.rest}, {"params": self.trunk.parameters(), "lr": rate / 10}]
        return torch.optim.SGD(groups, lr=rate)  # <- unoptimized-parameter

    def fit(self, epochs):
        for epoch in range(epochs):
            for _ in range(4):
                x = torch.randn(8, 6)
                loss = (self.model(x) - x[:, :1]).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.optimizer = self.build(0.1 / (epoch + 2))


Solver().fit(4)
