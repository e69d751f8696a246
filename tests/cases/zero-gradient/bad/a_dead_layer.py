import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2)
        nn.init.constant_(self.a.bias, -50.0)
    def forward(self, x):
        h = F.relu(self.a(x))  # <- zero-gradient
        return self.b(h)

m = M()
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(10):
    o.zero_grad()
    F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()  # also note: zero-gradient
    o.step()
