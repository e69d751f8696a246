import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

hyper = nn.Linear(2, 12)
opt = torch.optim.Adam(hyper.parameters())
weight = torch.tanh(hyper(torch.randn(2))).view(4, 3)  # <- freed-graph
for _ in range(3):
    loss = F.linear(torch.randn(8, 3), weight).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
