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

class Glimpse(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.read = nn.Linear(6, 1), mlp(6, 3)

    def choose(self, patches):
        return self.score(patches).squeeze(-1).argmax(1)  # <- unreached-parameter

    def forward(self, patches):
        where = self.choose(patches)
        return self.read(patches[torch.arange(len(patches)), where])

model = Glimpse()
x, y = torch.randn(32, 5, 6), torch.randint(3, (32,))
fit(model, torch.optim.Adam(model.parameters()), lambda step: F.cross_entropy(model(x), y))
