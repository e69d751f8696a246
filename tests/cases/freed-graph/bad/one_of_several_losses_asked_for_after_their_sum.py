import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)

def norm_of(losses):
    return torch.autograd.grad(losses[0], net[2].weight)[0].norm()

for _ in range(2):
    losses = net(torch.randn(5, 3)).pow(2).mean(0)
    opt.zero_grad()
    losses.sum().backward()  # <- freed-graph
    norm_of(losses)
    opt.step()
