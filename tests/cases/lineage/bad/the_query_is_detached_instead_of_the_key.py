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

class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.project = mlp(4, 6), nn.Linear(6, 3)
        self.register_buffer("queue", F.normalize(torch.randn(10, 3), dim=1))

    def embed(self, x):
        return F.normalize(self.project(self.encoder(x).detach()), dim=1)  # <- unreached-parameter

    def forward(self, x):
        q, k = self.embed(x), self.embed(x + 0.1)
        logits = torch.cat([(q * k.detach()).sum(1, keepdim=True), q @ self.queue.t()], 1)
        return F.cross_entropy(logits / 0.1, torch.zeros(len(x), dtype=torch.long))

model = MoCo()
x = torch.randn(16, 4)
fit(model, torch.optim.SGD(model.parameters(), 0.1), lambda step: model(x))
