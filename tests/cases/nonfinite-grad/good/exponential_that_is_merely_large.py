import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 3)
opt = torch.optim.SGD(m.parameters(), 1e-3)
for _ in range(4):
    loss = (m(torch.randn(4, 3)).exp() + 1).log().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
