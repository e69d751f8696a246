import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9, 3))

    def forward(self, i):
        return F.embedding(i, self.weight, sparse=True)  # <- sparse-grad

table = Table()
opt = torch.optim.Adam(table.parameters())
table(torch.tensor([1, 4])).sum().backward()
opt.step()
