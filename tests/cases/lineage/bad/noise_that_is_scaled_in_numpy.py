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

class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.std, self.dec = mlp(4, 2), mlp(4, 2), mlp(2, 4)

    def forward(self, x):
        std = F.softplus(self.std(x)).detach().numpy()  # <- unreached-parameter
        return self.dec(self.mu(x) + torch.from_numpy(std) * torch.randn(len(x), 2))

model = VAE()
opt = torch.optim.Adam(model.parameters())
x = torch.randn(32, 4)
fit(model, opt, lambda step: F.mse_loss(model(x), x))
