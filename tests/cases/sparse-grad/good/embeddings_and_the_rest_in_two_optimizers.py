import torch
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(9, 3, sparse=True), nn.Linear(3, 1)
opts = [torch.optim.SparseAdam(table.parameters()), torch.optim.AdamW(head.parameters())]
for _ in range(4):
    for opt in opts:
        opt.zero_grad()
    head(table(torch.tensor([1, 4]))).pow(2).sum().backward()
    nn.utils.clip_grad_norm_(head.parameters(), 1.0)
    for opt in opts:
        opt.step()
