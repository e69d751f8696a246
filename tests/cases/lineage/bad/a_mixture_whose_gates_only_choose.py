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

class Mixture(nn.Module):
    def __init__(self, experts=3):
        super().__init__()
        self.gate = nn.Linear(4, experts)
        self.experts = nn.ModuleList(mlp(4, 1) for _ in range(experts))

    def forward(self, x):
        _, chosen = self.gate(x).topk(1, dim=1)  # <- unreached-parameter
        outs = torch.stack([expert(x) for expert in self.experts], 1)
        return outs.gather(1, chosen.unsqueeze(-1)).squeeze(1)

model = Mixture()
x = torch.randn(32, 4)
fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :1]))
