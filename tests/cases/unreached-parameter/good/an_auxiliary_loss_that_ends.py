import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net, aux = mlp(4, 4), nn.Linear(4, 2)
opt = torch.optim.Adam([*net.parameters(), *aux.parameters()])
for step in range(24):
    h = net(torch.randn(8, 4))
    loss = h.square().mean()
    if step < 10:
        loss = loss + 0.1 * aux(h.detach()).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
