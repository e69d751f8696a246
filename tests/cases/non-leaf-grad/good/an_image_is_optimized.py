import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp(4, 2)
img = torch.randn(1, 4, requires_grad=True)
o = torch.optim.LBFGS([img])
for _ in range(4):
    def c():
        o.zero_grad()
        l = net(img).pow(2).sum()
        l.backward()
        return l
    o.step(c)  # also no-effect-step
