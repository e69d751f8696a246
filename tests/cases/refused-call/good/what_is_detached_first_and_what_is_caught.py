import numpy as np
import copy

import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

def numpy_of(t):
    try:
        return t.numpy()
    except RuntimeError:
        return t.detach().numpy()
for _ in range(4):
    out = net(torch.randn(8, 4))
    out.register_hook(lambda g: None)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
    numpy_of(out)
    np.asarray(out.detach())
    copy.deepcopy(net)
    copy.deepcopy(opt)
