import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()

class Discrete(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = mlp(4, 6), mlp(6, 4)

    def code(self, x):
        dist = torch.distributions.OneHotCategorical(logits=self.enc(x))
        return dist.sample()  # <- unreached-parameter

    def forward(self, x):
        return self.dec(self.code(x))

model = Discrete()
x = torch.randn(32, 4)
fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x))
