import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Trainer:
    def __init__(self):
        self.net = mlp(4, 8)
        self.opt = torch.optim.Adam(self.net.parameters())
    def distill(self, h, target):
        proj = nn.Linear(8, 3)  # <- unoptimized-parameter
        return F.mse_loss(proj(h), target)
    def fit(self):
        for _ in range(6):
            loss = self.distill(self.net(torch.randn(8, 4)), torch.zeros(8, 3))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

Trainer().fit()
