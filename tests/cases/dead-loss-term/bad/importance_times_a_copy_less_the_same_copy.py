import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
fisher = [torch.rand_like(p) for p in net.parameters()]
star = [p.detach().clone() for p in net.parameters()]
for _ in range(6):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    penalty = 0.0
    for f, new, old in zip(fisher, star, star):
        penalty += (f * (new - old) ** 2).sum()  # <- dead-loss-term
    loss = loss + 5.0 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
