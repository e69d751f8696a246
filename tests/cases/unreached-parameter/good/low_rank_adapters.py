import torch
from torch import nn

torch.manual_seed(0)

class L(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(2, 4) * 0.1)
        self.B = nn.Parameter(torch.zeros(4, 2))
    def forward(self, x):
        return self.base(x) + x @ self.A.t() @ self.B.t()

m = nn.Sequential(L(), nn.ReLU(), L())
o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
