import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.opt = torch.optim.Adam(self.model.parameters())

    def step(self, x):
        loss = self.model(x).pow(2).mean().detach()  # <- no-graph
        loss.requires_grad = True
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

trainer = Trainer()
for _ in range(3):
    trainer.step(torch.randn(8, 4))
