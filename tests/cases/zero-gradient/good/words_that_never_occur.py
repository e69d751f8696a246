import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(100, 4, padding_idx=0)
opt = torch.optim.Adam(table.parameters())
for _ in range(12):
    opt.zero_grad()
    table(torch.randint(5, (8,))).pow(2).mean().backward()
    opt.step()
