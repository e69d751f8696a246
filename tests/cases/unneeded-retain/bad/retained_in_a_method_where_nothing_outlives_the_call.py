import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        loss = self.model(x).pow(2).mean()
        self.opt.zero_grad()
        loss.backward(retain_graph=True)  # <- unneeded-retain
        self.opt.step()
        return loss.item()

trainer = Trainer()
for _ in range(3):
    trainer.step(torch.randn(8, 3))
