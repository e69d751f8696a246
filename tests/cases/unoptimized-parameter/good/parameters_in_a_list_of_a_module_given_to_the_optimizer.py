import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.gains = [nn.Parameter(torch.ones(4)) for _ in range(3)]
    def forward(self, x):
        for gain in self.gains:
            x = torch.tanh(x * gain)
        return x

m = M()
o = torch.optim.SGD(m.gains, 0.1)
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
