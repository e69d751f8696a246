import torch
from torch import nn

torch.manual_seed(0)

m = nn.MultiheadAttention(8, 2, batch_first=True)
e = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
o = torch.optim.Adam([*m.parameters(), *e.parameters()])
for _ in range(8):
    x = torch.randn(4, 5, 8)
    o.zero_grad()
    m(e(x), x, x)[0].pow(2).mean().backward()
    o.step()
