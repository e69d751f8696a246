import torch
from torch import nn

torch.manual_seed(0)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.scale = torch.ones(2, requires_grad=True)
        self.shift = torch.zeros(2, requires_grad=True)
    def forward(self, x):
        return self.fc(x) * self.scale + self.shift

m = M()
o = torch.optim.Adam([*m.parameters(), m.scale])
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
    with torch.no_grad():
        m.shift -= 0.1 * m.shift.grad
        m.shift.grad = None
