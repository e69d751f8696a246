import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
    def forward(self, x):
        self.gain = self.gain.abs()  # <- unoptimized-parameter
        return x * self.gain

Net()(torch.randn(2, 4))
