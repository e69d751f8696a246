import torch
from torch import nn

torch.manual_seed(0)

class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.factor = torch.ones(n, requires_grad=True)  # <- unoptimized-parameter
    def forward(self, x):
        return x * self.factor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(4, 8), Scale(8), nn.Linear(8, 1))
    def forward(self, x):
        return self.tower(x)

def fit(model):
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for _ in range(8):
        opt.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        opt.step()

fit(Net())
