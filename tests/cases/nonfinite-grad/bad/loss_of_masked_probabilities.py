import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 4)
keep = torch.tensor([True, True, True, False])
p = net(torch.randn(5, 3)).masked_fill(~keep, float("-inf")).softmax(1)
loss = (p * p.log()).sum()  # <- nonfinite-grad
loss.backward()
