import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

seen = []
for _ in range(3):
    out = net(torch.randn(8, 4))
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
    seen.append(np.asarray(out))  # <- refused-call
