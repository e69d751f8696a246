import torch
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(9, 3, sparse=True), nn.Linear(3, 1)
opt = torch.optim.SparseAdam([*table.parameters(), *head.parameters()])  # <- sparse-grad
head(table(torch.tensor([1, 4]))).pow(2).sum().backward()
opt.step()
