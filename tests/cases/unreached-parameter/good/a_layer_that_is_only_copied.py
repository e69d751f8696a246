import torch
from torch import nn

torch.manual_seed(0)

class T(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)  # also note: unreached-parameter
        self.enc = nn.TransformerEncoder(self.layer, 2)
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        return self.out(self.enc(x)).mean(1)

m = T()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(4, 5, 8)).pow(2).mean().backward()
    o.step()
