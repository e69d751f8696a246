import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 8)
    def forward(self, x):
        h = torch.relu(self.inp(x))
        return nn.Linear(8, 2)(h)  # <- unoptimized-parameter

m = Net()
o = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(5):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
