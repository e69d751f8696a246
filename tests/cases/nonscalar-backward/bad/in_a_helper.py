import torch
from torch import nn

torch.manual_seed(0)

def step(loss, opt):
    opt.zero_grad()
    loss.backward()  # <- nonscalar-backward
    opt.step()

m = nn.Linear(4, 1)
step(m(torch.randn(6, 4)).pow(2).squeeze(1), torch.optim.SGD(m.parameters(), 0.1))
