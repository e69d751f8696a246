import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

m = mlp()
o = torch.optim.SGD(list(m.state_dict().values()), lr=0.1)  # <- unoptimized-parameter
for _ in range(6):
    m.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()  # also step-without-grad
