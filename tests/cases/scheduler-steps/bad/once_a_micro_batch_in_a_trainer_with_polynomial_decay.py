import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(12)]

def backward(x, y):
    F.mse_loss(model(x), y).backward()

class Trainer:
    def __init__(self, accumulate):
        self.accumulate, self.done = accumulate, 0
        self.schedule = lr_scheduler.PolynomialLR(opt, total_iters=8)

    def on_batch(self, x, y):
        backward(x, y)
        self.done += 1
        if self.done % self.accumulate == 0:
            opt.step()
            opt.zero_grad()
        self.schedule.step()  # <- scheduler-steps

trainer = Trainer(3)
for epoch in range(2):
    for x, y in data:
        trainer.on_batch(x, y)
