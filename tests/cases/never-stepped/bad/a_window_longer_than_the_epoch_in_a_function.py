import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(6)]

class Trainer:
    def __init__(self, model, optimizer, accumulate):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate

    def fit(self, data, epochs):
        for epoch in range(epochs):
            self.optimizer.zero_grad()
            for batch, (x, y) in enumerate(data, 1):
                loss = F.mse_loss(self.model(x), y) / self.accumulate
                loss.backward()
                if batch % self.accumulate == 0:  # <- never-stepped
                    self.optimizer.step()
                    self.optimizer.zero_grad()

Trainer(model, opt, 10).fit(data, 3)
