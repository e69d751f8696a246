import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(6, 5, 8); fc = nn.Linear(8, 3)
o, _ = nn.MultiheadAttention(8, 2)(x, x, x)
fc(o.mean(0)).sum().backward()
o = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x)
(fc(o.mean(1)).sum() + fc(o[:, 0]).sum()).backward()
