import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def epoch(self, batches, every=4):
        for i, x in enumerate(batches):
            loss = self.model(x).pow(2).mean() / every
            loss.backward()
            if (i + 1) % every == 0:  # <- stale-grad
                self.opt.step()
                self.opt.zero_grad()

trainer = Trainer()
for epoch in range(3):
    trainer.epoch(torch.randn(10, 8, 3))
