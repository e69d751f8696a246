import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    @torch.no_grad()  # <- no-graph
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

Net()(torch.randn(8, 4)).pow(2).mean().backward()
