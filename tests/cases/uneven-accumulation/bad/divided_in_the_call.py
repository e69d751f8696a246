import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(11)]

def loss_of(x, y):
    return F.mse_loss(model(x), y)

class Trainer:
    window = 3
    def fit(self):
        for epoch in range(4):
            for i, (x, y) in enumerate(data):
                (loss_of(x, y) / self.window).backward()
                if i % self.window == self.window - 1 or i == len(data) - 1:
                    opt.step()  # <- note: uneven-accumulation
                    opt.zero_grad()

Trainer().fit()
