import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class FF(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.p = p
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        h = F.dropout(F.gelu(self.a(x)), p=self.p)  # <- wrong-mode
        return x + self.b(h)


m = nn.Sequential(FF(), nn.Linear(8, 2))
o = torch.optim.Adam(m.parameters())
for ep in range(2):
    m.train()
    for _ in range(3):
        l = F.cross_entropy(m(torch.randn(8, 8)), torch.randint(2, (8,)))
        o.zero_grad()
        l.backward()
        o.step()
    m.eval()
    with torch.inference_mode():
        [m(torch.randn(4, 8)) for _ in range(2)]
