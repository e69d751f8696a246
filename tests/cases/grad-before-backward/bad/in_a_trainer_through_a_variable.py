import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def batch(n=16):
    x = torch.randn(n, 4)
    return x, x.sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt

    def clip(self, limit):
        for p in self.model.parameters():
            g = p.grad  # <- grad-before-backward
            g.clamp_(-limit, limit)

    def fit(self, steps):
        for _ in range(steps):
            x, y = batch()
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            self.clip(0.1)
            loss.backward()
            self.opt.step()

Trainer(net, opt).fit(3)
