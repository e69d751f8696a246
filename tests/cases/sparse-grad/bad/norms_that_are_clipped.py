import torch
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(9, 3, sparse=True), nn.Linear(3, 1)  # <- sparse-grad
opt = torch.optim.SGD([*table.parameters(), *head.parameters()], 0.1)
for _ in range(2):
    opt.zero_grad()
    head(table(torch.tensor([1, 4]))).pow(2).sum().backward()
    nn.utils.clip_grad_norm_([*table.parameters(), *head.parameters()], 1.0)
    opt.step()
