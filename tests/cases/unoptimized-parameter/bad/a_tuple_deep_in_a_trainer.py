import torch
from torch import nn

torch.manual_seed(0)

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 8)
        self.branches = tuple(nn.Linear(8, 1) for _ in range(3))  # <- unoptimized-parameter
    def forward(self, x):
        return torch.cat([branch(torch.tanh(self.shared(x))) for branch in self.branches], 1)

class Trainer:
    def __init__(self):
        self.net = Encoder()
        self.opt = torch.optim.Adam(self.net.parameters())
    def fit(self):
        for _ in range(6):
            self.opt.zero_grad()
            self.net(torch.randn(8, 4)).pow(2).mean().backward()
            self.opt.step()

Trainer().fit()
