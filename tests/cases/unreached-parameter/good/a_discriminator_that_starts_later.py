import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

g, d = mlp(4, 4), mlp(4, 1)
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for step in range(24):
    fake = g(torch.randn(8, 4))
    loss = fake.square().mean()
    if step > 8:
        loss = loss - d(fake).mean()
    og.zero_grad()
    loss.backward()
    og.step()
    if step > 8:
        od.zero_grad()
        d(fake.detach()).mean().backward()
        od.step()
