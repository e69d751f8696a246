import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(4, 2), nn.Parameter(torch.tensor(0.37))

    def forward(self, x):
        return torch.mul(self.lin(x), float(self.scale))  # <- unreached-parameter

model = Scaled()
x = torch.randn(16, 4)
fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :2]))
