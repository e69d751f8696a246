import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(9, 3, sparse=True)
opt = torch.optim.Adam(table.parameters())
table(torch.tensor([1, 4])).pow(2).sum().backward()
try:
    opt.step()
except RuntimeError:
    opt = torch.optim.SparseAdam(list(table.parameters()))
    opt.step()
