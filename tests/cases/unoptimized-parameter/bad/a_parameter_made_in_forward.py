import torch
from torch import nn

torch.manual_seed(0)

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        query = nn.Parameter(torch.randn(4))  # <- unoptimized-parameter
        w = (self.lin(x) @ query).softmax(1)
        return (w.unsqueeze(-1) * x).sum(1)

m = Attention()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 3, 4)).pow(2).mean().backward()
    o.step()
