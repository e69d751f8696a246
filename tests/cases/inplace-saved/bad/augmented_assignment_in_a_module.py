import torch
from torch import nn

torch.manual_seed(0)

class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(4))
        self.up = nn.Linear(4, 4)

    def forward(self, x):
        x += self.pos  # <- inplace-saved
        return self.up(x)

stem, one, two = nn.Linear(4, 4), Shift(), Shift()
x = stem(torch.randn(2, 4))
(one(x) + two(x)).sum().backward()
