import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.seen = None
    def forward(self, x):
        self.seen = x.clone().requires_grad_()
        return self.fc(self.seen)

m = M()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    print(m.seen.grad.norm())
    o.step()
