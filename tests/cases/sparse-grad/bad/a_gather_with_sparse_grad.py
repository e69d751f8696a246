import torch
from torch import nn

torch.manual_seed(0)

scores = nn.Parameter(torch.randn(4, 5))
opt = torch.optim.Adam([scores])
picked = torch.gather(scores, 1, torch.tensor([[0], [1], [2], [3]]), sparse_grad=True)  # <- sparse-grad
picked.sum().backward()
opt.step()
