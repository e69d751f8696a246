import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(9, 3, sparse=True)  # <- sparse-grad
opt = torch.optim.Adagrad(table.parameters(), 0.1, weight_decay=1e-2)
table(torch.tensor([1, 4])).pow(2).sum().backward()
opt.step()
