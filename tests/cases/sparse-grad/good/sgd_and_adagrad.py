import torch
from torch import nn

torch.manual_seed(0)

for kind in (torch.optim.SGD, torch.optim.Adagrad):
    table = nn.Embedding(9, 3, sparse=True)
    opt = kind(table.parameters(), 0.1)
    for _ in range(3):
        opt.zero_grad()
        table(torch.tensor([1, 4])).pow(2).sum().backward()
        opt.step()
