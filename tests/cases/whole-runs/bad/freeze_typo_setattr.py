import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

    def freeze(self):
        for p in self.a.parameters():
            setattr(p, "require_grad", False)  # <- misspelt-attribute


m = Backbone()
m.freeze()
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(4):
    l = F.cross_entropy(m(torch.randn(8, 4)), torch.randint(2, (8,)))
    o.zero_grad()
    l.backward()
    o.step()
