import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 1)
        self.body_opt = torch.optim.Adam(self.body.parameters())
        self.head_opt = torch.optim.Adam(self.head.parameters())
        self.scaler = torch.amp.GradScaler("cpu", init_scale=128.0)

    def step(self, x):
        self.body_opt.zero_grad()
        self.head_opt.zero_grad()
        self.scaler.scale(self.head(self.body(x)).pow(2).mean()).backward()
        self.scaler.step(self.body_opt)
        self.head_opt.step()  # <- scaled-grad
        self.scaler.update()

trainer = Trainer()
for _ in range(3):
    trainer.step(torch.randn(8, 3))
