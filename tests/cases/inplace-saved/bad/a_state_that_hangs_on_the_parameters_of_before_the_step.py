import torch
from torch import nn

torch.manual_seed(0)

class Online:
    def __init__(self):
        self.a = nn.Parameter(torch.eye(2))
        self.opt = torch.optim.SGD([self.a], 0.1)
        self.mean = torch.ones(2)
    def observe(self, seq):
        mean, loss = self.mean, 0.0
        for z in seq:
            error = z - mean
            loss = loss + error.pow(2).mean()
            mean = self.a @ (self.a @ mean + error)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.mean = mean  # <- inplace-saved

online = Online()
for _ in range(3):
    online.observe(torch.randn(3, 2))
