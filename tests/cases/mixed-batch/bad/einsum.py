import torch
from torch import nn

torch.manual_seed(0)

lin = nn.Linear(4, 4); q = torch.randn(6, 4); c = torch.randn(6, 5, 4)
w = torch.einsum("bd,btd->bt", lin(q), c).softmax(0)  # <- mixed-batch
torch.einsum("bt,btd->bd", w, c).pow(2).mean().backward()
