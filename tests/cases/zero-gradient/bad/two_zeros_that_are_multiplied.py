import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class LoRA(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 2).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.zeros(2, 4)), nn.Parameter(torch.zeros(2, 2))  # <- zero-gradient
    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)

m = LoRA()
head = nn.Linear(2, 1)
o = torch.optim.Adam([m.a, m.b, *head.parameters()])
for _ in range(6):
    o.zero_grad()
    head(m(torch.randn(8, 4))).pow(2).mean().backward()
    o.step()
